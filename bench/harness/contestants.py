"""The servers that are measured: nginx, HAProxy, Varnish and the gate, each as its expert users set it up.

A contestant is a program with one `Setup`. Several setups of one program may stand side by side
where it is not obvious which is its best: the best counts.
"""

import http.client
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from pathlib import Path

from . import accounting, certificates, origin, templates
from .certificates import HOST
from .machine import BENCH, LOAD_CORE, REPOSITORY, SERVER_CORE, files_max
from .processes import Failed, Process, await_true, require_free


class Program(Enum):
    """Which server a contestant is."""

    NGINX = "nginx"
    HAPROXY = "haproxy"
    VARNISH = "varnish"
    TIDEGATE = "tidegate"


class AccessLog(Enum):
    """Where the JSON access log goes."""

    OFF = "off"
    FILE = "file"
    """Written by the server itself; HAProxy writes its standard output, which is a file."""
    SINK = "sink"
    """HAProxy's ring buffer, forwarded to a log server on the load generator's core."""


class Cache(Enum):
    """What becomes of responses that may be stored."""

    OFF = "off"
    ON = "on"
    """Kept in memory; nginx keeps files, which the page cache holds."""


@dataclass(frozen=True)
class Firewall:
    """The Core Rule Set, blocking, at a paranoia level."""

    level: int


@dataclass(frozen=True)
class Setup:
    """What distinguishes one contestant from another of the same program."""

    log: AccessLog = AccessLog.OFF
    cache: Cache = Cache.OFF
    sites: int = 1
    nginx_buffers: str = "proxy_buffers 8 16k; proxy_buffer_size 16k;"
    haproxy_bufsize: int = 16_384
    haproxy_splice: bool = False
    firewall: Firewall | None = None
    rules: str | None = None
    """Rules of its own, in place of the Core Rule Set."""


@dataclass
class Contestant:
    """One server, stopped or running. `label` names it in the results."""

    label: str
    program: Program
    ordinal: int
    setup: Setup = field(default_factory=Setup)

    def __post_init__(self):
        port = 18_100 + 10 * self.ordinal
        self.plain = f"127.0.0.1:{port}"
        self.tls = f"127.0.0.1:{port + 1}"
        self._sink_port = port + 2
        self.files: dict[str, str] = {}
        """The configuration as it was written, for the record."""
        self._process: Process | None = None
        self._sink: Process | None = None

    def start(self, work: Path) -> None:
        """Write the configuration, start the server pinned, and wait until it serves rightly."""
        self.work = work
        work.mkdir(parents=True)
        certificates.make(work)
        for address in (self.plain, self.tls):
            require_free(address)
        command = {
            Program.NGINX: self._configure_nginx,
            Program.HAPROXY: self._configure_haproxy,
            Program.VARNISH: self._configure_varnish,
            Program.TIDEGATE: self._configure_tidegate,
        }[self.program]()
        if self.setup.log is AccessLog.SINK:
            sink = [sys.executable, str(BENCH / "harness/log_sink.py"), str(self._sink_port), str(self.log_path)]
            self._sink = Process("log-sink", sink, LOAD_CORE, work)
            self._sink.next_line(patience_s=10)
        self._process = Process(self.label, command, SERVER_CORE, work)
        await_true(f"the start of {self.label}", self._listens, patience_s=60)
        self.probe()
        if (cores := accounting.cores_allowed(self.pid)) != {str(SERVER_CORE)}:
            raise Failed(f"{self.label} has threads on cores {sorted(cores)}")

    def stop(self) -> None:
        for process in (self._process, self._sink):
            if process:
                process.stop()

    @property
    def pid(self) -> int:
        return self._process.pid

    def check_running(self) -> None:
        if not self._process.running():
            raise Failed(f"{self.label} ended: {self._process.errors()}")

    @property
    def log_path(self) -> Path:
        """The file that the access log ends up in."""
        to_output = self.program is Program.HAPROXY and self.setup.log is AccessLog.FILE
        return self.work / (f"{self.label}.out" if to_output else "access.log")

    def log_lines(self) -> int:
        """How many requests have been logged so far."""
        if not self.log_path.exists():
            return 0
        with self.log_path.open("rb") as log:
            return sum(block.count(b"\n") for block in iter(lambda: log.read(1 << 20), b""))

    def hosts(self) -> list[str]:
        """The host names of its sites."""
        return [HOST] + [f"site-{n:05}.bench.test" for n in range(1, self.setup.sites)]

    def probe(self) -> dict[str, str]:
        """One request for each body over each listener; says what TLS came to."""
        negotiated = {}
        # Varnish has no TLS of its own.
        for secured in (False,) if self.program is Program.VARNISH else (False, True):
            for path in origin.BODIES:
                connection = self._connection(secured)
                # Over TLS the host must be the one that SNI named.
                host = HOST if secured else self.hosts()[-1]
                # Rules ask for what every browser sends.
                browser = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64)", "Accept": "*/*"}
                connection.request("GET", path, headers={"Host": host, **browser})
                answer = connection.getresponse()
                if (answer.status, answer.read()) != (200, origin.body(path)):
                    raise Failed(f"{self.label} answers {path} wrongly: status {answer.status}")
                if secured:
                    cipher, version, _ = connection.sock.cipher()
                    negotiated = {"version": version, "cipher": cipher}
                connection.close()
        return negotiated

    def _connection(self, secured: bool) -> http.client.HTTPConnection:
        host, port = (self.tls if secured else self.plain).split(":")
        if not secured:
            return http.client.HTTPConnection(host, int(port), timeout=10)
        context = ssl.create_default_context(cafile=self.work / "server.pem")
        return http.client.HTTPSConnection(HOST, int(port), timeout=10, context=context)

    def _listens(self) -> bool:
        self.check_running()
        try:
            connection = self._connection(False)
            connection.connect()
            connection.close()
        except OSError:
            return False
        return True

    def _write(self, name: str, text: str) -> Path:
        self.files[name] = text.replace(str(self.work), "WORK")
        return templates.write(self.work, name, text)

    def _configure_nginx(self) -> list[str]:
        servers = [
            templates.fill(
                "nginx/server.conf",
                {
                    "PLAIN": self.plain,
                    "TLS": self.tls,
                    "HOST": host,
                    # Options of a listening socket may be given once only.
                    "LISTEN_OPTIONS": "reuseport backlog=4096" if first else "",
                },
            )
            for first, host in zip([True] + [False] * self.setup.sites, self.hosts())
        ]
        config = templates.fill(
            "nginx/nginx.conf",
            {
                "WORK": str(self.work),
                "NOFILE": str(files_max()),
                "ORIGIN": origin.ADDRESS,
                "ACCESS_LOG": {
                    AccessLog.OFF: "off",
                    AccessLog.FILE: f"{self.log_path} record buffer=64k flush=1s",
                }[self.setup.log],
                "PROXY_BUFFERS": self.setup.nginx_buffers,
                "CACHE": templates.fill("nginx/cache.conf", {"WORK": str(self.work)}) if self._caches() else "",
                "SERVERS": "".join(servers),
                **self._nginx_firewall(),
            },
        )
        return ["nginx", "-c", str(self._write("nginx.conf", config))]

    def _nginx_firewall(self) -> dict[str, str]:
        if not self.setup.firewall:
            return {"MODULES": "", "FIREWALL": ""}
        # ModSecurity takes an @ in a path for the end of it, and wants an empty line behind a rule without
        # actions. The Go module has taken out those that the release has.
        rules = self.work / "crs"
        shutil.copytree(rule_set() / "rules/@owasp_crs", rules)
        rules.chmod(0o755)
        for file in rules.glob("*.conf"):
            text = re.sub(r"^(?=Sec)", "\n", file.read_text(), flags=re.MULTILINE)
            file.unlink()
            file.write_text(text)
        shutil.copyfile(rule_set() / "rules/@crs-setup.conf.example", self.work / "crs-setup.conf")
        setup = {
            "SETUP": str(self.work / "crs-setup.conf"),
            "LEVEL": str(self.setup.firewall.level),
            "RULES": str(self.work / "crs/*.conf"),
        }
        path = self._write("modsecurity.conf", templates.fill("nginx/modsecurity.conf", setup))
        return {
            "MODULES": "load_module /usr/lib/nginx/modules/ngx_http_modsecurity_module.so;",
            "FIREWALL": f"modsecurity on; modsecurity_rules_file {path}; client_body_buffer_size 256k;",
        }

    def _tidegate_firewall(self) -> str:
        if self.setup.rules:
            rules = {"WORK": str(self.work), "RULES": str(self._write("rules.conf", self.setup.rules))}
            return templates.fill("tidegate/rules.toml", rules)
        if not self.setup.firewall:
            return ""
        level = str(self.setup.firewall.level)
        return templates.fill("tidegate/waf.toml", {"RULES": str(rule_set()), "LEVEL": level})

    def _configure_haproxy(self) -> list[str]:
        if self.setup.firewall:
            raise Failed("HAProxy has no engine for the Core Rule Set")
        if self.setup.sites != 1:
            raise Failed("HAProxy has no sites of its own: host names are a map that users write")
        logging = self.setup.log is not AccessLog.OFF
        config = templates.fill(
            "haproxy/haproxy.cfg",
            {
                "WORK": str(self.work),
                "PLAIN": self.plain,
                "TLS": self.tls,
                "ORIGIN": origin.ADDRESS,
                "BUFSIZE": str(self.setup.haproxy_bufsize),
                "SPLICE": "option splice-auto" if self.setup.haproxy_splice else "",
                "GLOBAL_LOG": {
                    AccessLog.OFF: "",
                    AccessLog.FILE: "log stdout format raw local0 info",
                    AccessLog.SINK: "log ring@requests format raw local0 info",
                }[self.setup.log],
                "LOG": "log global" if logging else "",
                "CACHE": templates.fill("haproxy/cache.cfg", {}) if self._caches() else "",
                "CACHE_USE": "filter cache kept\n    http-request cache-use kept\n    http-response cache-store kept"
                if self._caches()
                else "",
                "LOG_FORMAT": templates.fill("haproxy/log-format.cfg", {}).strip() if logging else "",
                "RING": templates.fill("haproxy/ring.cfg", {"SINK": f"127.0.0.1:{self._sink_port}"})
                if self.setup.log is AccessLog.SINK
                else "",
            },
        )
        return ["haproxy", "-db", "-f", str(self._write("haproxy.cfg", config))]

    def _configure_varnish(self) -> list[str]:
        if not self._caches():
            raise Failed("Varnish is measured as a cache only")
        host, port = origin.ADDRESS.split(":")
        config = templates.fill("varnish/varnish.vcl", {"ORIGIN_HOST": host, "ORIGIN_PORT": port})
        parameters = {
            # One core, and no more than its connections can use.
            "thread_pools": "1",
            "timeout_idle": "900",
            # Nobody reads its log in memory, and the others write none.
            "vsl_mask": ",".join(f"-{tag}" for tag in VARNISH_TAGS),
        }
        return [
            *("varnishd", "-F", "-j", "none", "-n", str(self.work / "varnish"), "-a", self.plain),
            *("-f", str(self._write("varnish.vcl", config)), "-s", "malloc,256m"),
            *(word for name, value in parameters.items() for word in ("-p", f"{name}={value}")),
        ]

    def _caches(self) -> bool:
        return self.setup.cache is Cache.ON

    def _configure_tidegate(self) -> list[str]:
        logging = self.setup.log is AccessLog.FILE
        first, *others = (
            templates.fill(
                "tidegate/site.toml",
                {
                    "HOST": host,
                    "SITE_LOGS": 'logs = ["access"]' if logging else "",
                    "SITE_CACHE": 'cache = "on"' if self._caches() else "",
                },
            )
            for host in self.hosts()
        )
        if others:
            self._write("sites.toml", "".join(others))
        config = templates.fill(
            "tidegate/tidegate.toml",
            {
                "WORK": str(self.work),
                "INCLUDE": 'include = ["sites.toml"]' if others else "",
                "PLAIN": self.plain,
                "TLS": self.tls,
                "ORIGIN": origin.ADDRESS,
                "LOG": templates.fill("tidegate/log.toml", {"WORK": str(self.work)}) if logging else "",
                "CACHE": templates.fill("tidegate/cache.toml", {}) if self._caches() else "",
                "FIREWALL": self._tidegate_firewall(),
                "SITES": first,
            },
        )
        return [str(tidegate_binary()), "serve", str(self._write("tidegate.toml", config))]


VARNISH_TAGS = (
    "Begin End Link Timestamp SessOpen SessClose ReqStart ReqMethod ReqURL ReqProtocol ReqHeader ReqUnset ReqAcct "
    "Hit RespProtocol RespStatus RespReason RespHeader RespUnset VCL_call VCL_return VCL_use Filters"
).split()
"""What Varnish writes of each request into its log in memory."""

RULE_SET = "github.com/corazawaf/coraza-coreruleset/v4@v4.25.0"
"""The release of the Core Rule Set that is measured with, as a Go module brings it."""


@cache
def rule_set() -> Path:
    """Where the Core Rule Set lies; fetched if it is not there."""
    done = subprocess.run(["go", "mod", "download", "-json", RULE_SET], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"the Core Rule Set cannot be fetched:\n{done.stdout}{done.stderr}")
    return Path(json.loads(done.stdout)["Dir"])


def tidegate_binary() -> Path:
    """Where the gate's program is looked for."""
    return Path(os.environ.get("TIDEGATE_BIN", REPOSITORY / "target/release/tidegate")).absolute()


def line_up(*entries: tuple[str, Program, Setup]) -> list[Contestant]:
    """Contestants in the order in which they alternate; the gate only if it has been built."""
    present = [entry for entry in entries if entry[1] is not Program.TIDEGATE or tidegate_binary().exists()]
    return [Contestant(label, program, n, setup) for n, (label, program, setup) in enumerate(present)]
