"""The survival run: under a bounded load, the gate reloads, upgrades, drains a server and loses one.

Not a measurement: it passes or fails. A request may fail only if the killed server had begun to
answer it. POSTs pause before the kill: one that is under way then can neither be answered nor sent
again (RFC 9110, section 9.2.2), so counting it would ask for two things that exclude each other.
"""

import http.client
import json
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from . import certificates, loads, results, templates
from .certificates import HOST
from .contestants import tidegate_binary
from .gate_control import Gate
from .machine import LOAD_CORE
from .processes import Failed, Process, await_true, require_free
from .stage import Options, work_directory

RELOADS = 20
UPGRADES = 5
PLAIN = "127.0.0.1:18190"
TLS = "127.0.0.1:18191"
SERVERS = {name: f"127.0.0.1:{18_010 + n}" for n, name in enumerate(("a", "b", "c", "d"))}
DRAINED, KILLED = "b", "c"

STEADY_S = 2.0
"""How long the load runs before the first event, and after each of the later ones."""

SETTLE_S = 0.5


@dataclass
class Run:
    """The gate, its servers and its clients, all running."""

    work: Path
    gate: Gate
    servers: dict[str, Process]
    clients: Process
    plan: int = 0

    def phase(self, name: str) -> None:
        """Name what happens next; failures are booked on it."""
        self.clients.order(f"phase {name}")

    def reload(self) -> None:
        """Change the configuration and reload it, and see the change in an answer."""
        self.plan += 1
        write_config(self.work, self.plan)
        self.gate.reload()
        await_true(f"plan {self.plan}", lambda: serving_plan() == str(self.plan))


def run(name: str, options: Options) -> None:
    """Run every event once under load, then judge what the clients and the servers saw."""
    if not tidegate_binary().exists():
        results.say("  skipped: the gate has not been built, and its peers do not stand for this")
        return
    with work_directory() as work:
        certificates.make(work)
        processes: list[Process] = []
        gate = None
        try:
            for address in (PLAIN, TLS, *SERVERS.values()):
                require_free(address)
            servers = {}
            for server, address in SERVERS.items():
                servers[server] = start_server(work, server, address)
                processes.append(servers[server])
            gate = Gate(write_config(work, 0), work / "admin.sock", work)
            await_true("the gate's start", lambda: serving_plan() == "0")
            clients = start_clients(work)
            processes.append(clients)
            said = play(Run(work, gate, servers, clients))
            await_true("the end of every replaced process", lambda: len(gate.pids()) == 1, patience_s=30)
            ledger = Counter(line for entry in SERVERS for line in (work / f"{entry}.ledger").read_text().splitlines())
        except Failed as error:
            raise Failed(f"{error}\n{gate.errors() if gate else ''}") from error
        finally:
            for process in processes:
                process.stop()
            if gate:
                gate.stop()
    verdict = judge(said, ledger)
    results.keep(options.directory, name, {"title": __doc__.splitlines()[0], "unit": "requests", **verdict, "clients": said}, [])
    if verdict["faults"]:
        raise Failed("\n  ".join(["the run was not survived:", *verdict["faults"][:20]]))


def play(run: Run) -> dict:
    """The events, in order. Returns what the clients say at the end."""
    run.phase("steady")
    time.sleep(STEADY_S)
    for n in range(RELOADS):
        run.phase(f"reload {n + 1}")
        run.reload()
        time.sleep(SETTLE_S)
    for n in range(UPGRADES):
        run.phase(f"upgrade {n + 1}")
        run.gate.upgrade()
        await_true("an answer after the upgrade", lambda: serving_plan() == str(run.plan))
        time.sleep(STEADY_S)
    run.phase("drain")
    run.gate.drain("app", SERVERS[DRAINED])
    time.sleep(STEADY_S)
    run.phase("drained")
    time.sleep(STEADY_S)
    run.clients.order("posts off")
    time.sleep(SETTLE_S)
    run.phase("kill")
    run.servers[KILLED].kill()
    time.sleep(STEADY_S)
    run.phase("after")
    time.sleep(STEADY_S)
    run.clients.end_orders()
    return json.loads(run.clients.next_line(patience_s=60))


def judge(said: dict, ledger: Counter) -> dict:
    """What went wrong, and what was allowed to."""
    faults, permitted = [], 0
    for failure in said["failures"]:
        if failure["server"] == KILLED and failure["phase"] in ("drained", "kill", "after"):
            permitted += 1
        else:
            faults.append("{phase}: {protocol} {request} at {at:.2f} s: {error}".format(**failure))
    faults += [f"executed {times} times: {entry}" for entry, times in ledger.items() if times > 1]
    if given := said["served"]["drained"].get(DRAINED):
        faults.append(f"the drained server {DRAINED} was given {given} requests")
    for server in SERVERS:
        if not said["served"]["steady"].get(server):
            faults.append(f"server {server} was given nothing")
    if not ledger:
        faults.append("no POST was executed, so none can have been executed twice")
    requests = said["requests"]
    results.say(
        f"  {sum(requests.values())} requests ({', '.join(f'{count} {protocol}' for protocol, count in requests.items())}): "
        f"{len(faults)} faults, {permitted} cut by the killed server, {sum(ledger.values())} POSTs executed"
    )
    return {"faults": faults, "permitted": permitted, "posts_executed": sum(ledger.values())}


def start_server(work: Path, name: str, address: str) -> Process:
    """One upstream server, listening."""
    command = [str(loads.client()), "origin", "-address", address, "-name", name, "-ledger", str(work / f"{name}.ledger")]
    process = Process(f"server-{name}", command, LOAD_CORE, work)
    process.next_line(patience_s=10)
    return process


def start_clients(work: Path) -> Process:
    """The load: it runs until its orders end."""
    command = [str(loads.client()), "traffic", "-address", PLAIN, "-tls-address", TLS, "-host", HOST]
    return Process("clients", command, LOAD_CORE, work, orders=True)


def write_config(work: Path, plan: int) -> Path:
    """The configuration of one plan; its number is the only thing that changes."""
    config = templates.fill(
        "tidegate/survive.toml",
        {
            "WORK": str(work),
            "PLAIN": PLAIN,
            "TLS": TLS,
            "SERVERS": ", ".join(f'"{address}"' for address in SERVERS.values()),
            "HOST": HOST,
            "PLAN": str(plan),
        },
    )
    return templates.write(work, "tidegate.toml", config)


def serving_plan() -> str | None:
    """The plan that a new connection is served under; None if it is not served."""
    host, port = PLAIN.split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=5)
    try:
        connection.request("GET", "/body", headers={"Host": HOST, "Connection": "close"})
        answer = connection.getresponse()
        answer.read()
        return answer.getheader("X-Plan")
    except OSError:
        return None
    finally:
        connection.close()
