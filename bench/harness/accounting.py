"""CPU time and memory of a server: the sums over all its processes.

CPU time is read from each process's CPU clock (`clock_getcpuclockid(3)`): the nanoseconds that its
threads ran, those that have ended included. It is the sum of the threads' `sum_exec_runtime`, the
first field of `/proc/PID/task/*/schedstat`. `utime + stime` of `/proc/PID/stat` is the same quantity
on kernels with CONFIG_TICK_CPU_ACCOUNTING: `cputime_adjust()` scales the two so that they add up to
`sum_exec_runtime`, then rounds to ticks of 10 ms. Both readings go into the raw results, so that a
disagreement is seen.

Without CONFIG_IRQ_TIME_ACCOUNTING both include the interrupts and softirqs that ran on the thread's
back. On loopback that is the delivery of what the server itself sends, so the sender pays for it,
with every contestant alike. Softirqs that overflow into `ksoftirqd` are booked on nobody; their time
is sampled beside, to show that it is small.
"""

import os
import re
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .machine import SERVER_CORE
from .processes import Failed, family

TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class CpuTime:
    """CPU time used up to one moment."""

    processes_ns: dict[int, int]
    stat_ns: int
    """utime + stime of the same processes, in whole ticks."""
    softirqd_ns: int
    """What ksoftirqd of the server's core has used."""

    def since(self, earlier: "CpuTime") -> "CpuUsed":
        """What was used from an earlier sample to this one."""
        if gone := earlier.processes_ns.keys() - self.processes_ns.keys():
            raise Failed(f"processes {sorted(gone)} ended while they were measured")
        return CpuUsed(
            run_ns=sum(self.processes_ns.values()) - sum(earlier.processes_ns.values()),
            stat_ns=self.stat_ns - earlier.stat_ns,
            softirqd_ns=self.softirqd_ns - earlier.softirqd_ns,
        )


@dataclass(frozen=True)
class CpuUsed:
    """CPU time between two samples."""

    run_ns: int
    stat_ns: int
    softirqd_ns: int


def cpu_time(root: int) -> CpuTime:
    """Sample a server by its first process."""
    processes: dict[int, int] = {}
    ticks = 0
    for pid in family(root):
        processes[pid] = time.clock_gettime_ns(_cpu_clock(pid))
        # utime and stime are fields 14 and 15; the two before the name's end are cut off with it.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return CpuTime(processes, ticks * TICK_NS, _softirqd_ns())


def _cpu_clock(pid: int) -> int:
    """The clock id that clock_getcpuclockid(3) makes: the inverted id, and 2 for CPUCLOCK_SCHED."""
    return (~pid << 3) | 2


def _softirqd_ns() -> int:
    thread = _softirqd()
    return int((thread / "schedstat").read_text().split()[0]) if thread else 0


@cache
def _softirqd() -> Path | None:
    for comm in Path("/proc").glob("[0-9]*/comm"):
        try:
            if comm.read_text().strip() == f"ksoftirqd/{SERVER_CORE}":
                return comm.parent
        except (FileNotFoundError, ProcessLookupError):
            continue
    return None


def pss_bytes(root: int) -> int:
    """Proportional set size of a server: its own memory and its share of what it shares."""
    total = 0
    for pid in family(root):
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        total += int(re.search(r"^Pss:\s+(\d+) kB$", rollup, re.M).group(1)) * 1024
    return total


def cores_allowed(root: int) -> set[str]:
    """The core lists on which a server's threads may run; one entry if all are pinned alike."""
    lists = set()
    for pid in family(root):
        for task in Path(f"/proc/{pid}/task").iterdir():
            status = (task / "status").read_text()
            lists.add(re.search(r"^Cpus_allowed_list:\s+(.*)$", status, re.M).group(1))
    return lists
