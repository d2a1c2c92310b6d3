"""The gate's own commands, as its operator gives them, and the processes that answer to them."""

import subprocess
import time
from pathlib import Path

from .contestants import tidegate_binary
from .machine import SERVER_CORE
from .processes import Failed, Process

COMMAND_PATIENCE_S = 60.0


class Gate:
    """A running gate that may replace its own process."""

    def __init__(self, config: Path, admin_socket: Path, work: Path):
        self._config = config
        self._admin = ["--admin", f"unix:{admin_socket}"]
        self._process = Process("tidegate", [str(tidegate_binary()), "serve", str(config)], SERVER_CORE, work)

    def reload(self) -> None:
        """Take the configuration file anew."""
        self._command("reload", *self._admin)

    def upgrade(self) -> None:
        """Hand over to a new process, and wait until there is one."""
        before = set(self.pids())
        self._command("upgrade", *self._admin)
        deadline = time.monotonic() + COMMAND_PATIENCE_S
        while not set(self.pids()) - before:
            if time.monotonic() > deadline:
                raise Failed("the upgrade brought no new process")
            time.sleep(0.05)

    def drain(self, group: str, server: str) -> None:
        """Send a server of a group no new requests."""
        self._command("server", "drain", group, server, *self._admin)

    def pids(self) -> list[int]:
        """Every process that runs this configuration: after an upgrade, the old ones until they are drained."""
        found = []
        for directory in Path("/proc").glob("[0-9]*"):
            try:
                arguments = (directory / "cmdline").read_bytes().split(b"\0")
            except (FileNotFoundError, ProcessLookupError):
                continue
            if str(self._config).encode() in arguments and b"serve" in arguments:
                found.append(int(directory.name))
        return found

    def errors(self) -> str:
        return self._process.errors()

    def stop(self) -> None:
        """End every process of this gate."""
        for signal in ("TERM", "KILL"):
            for pid in self.pids():
                subprocess.run(["kill", f"-{signal}", str(pid)], check=False, capture_output=True)
            deadline = time.monotonic() + 5
            while self.pids() and time.monotonic() < deadline:
                time.sleep(0.1)
        self._process.stop()

    def _command(self, *arguments: str) -> None:
        done = subprocess.run(
            [str(tidegate_binary()), *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=COMMAND_PATIENCE_S,
        )
        if done.returncode != 0:
            raise Failed(f"tidegate {' '.join(arguments)}: {done.stdout}{done.stderr}")
