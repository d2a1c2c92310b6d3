"""The scenarios, one entry each: who takes part, under which load, and what is compared."""

from dataclasses import dataclass, replace

from . import results, rounds
from .contestants import AccessLog, Cache, Program, Setup, line_up
from .loads import H2load, Handshakes, ServedBy, Wrk
from .rounds import Ratio
from .stage import Options, running

SITES = 10_000


@dataclass(frozen=True)
class Comparison:
    """Contestants take turns under one load."""

    title: str
    entries: tuple[tuple[str, Program, Setup], ...]
    load: Wrk | H2load | Handshakes
    ratios: tuple[Ratio, ...]

    def run(self, name: str, options: Options) -> None:
        contestants = line_up(*self.entries)
        with running(contestants) as origin:
            negotiated = {contestant.label: contestant.probe() for contestant in contestants}
            measured = rounds.alternate(contestants, self._timed(options.seconds), origin, options.rounds, results.say)
        ratios = [ratio for entry in self.ratios if (ratio := entry.of(measured))]
        for ratio in ratios:
            results.say_ratio(ratio)
        unlike = rounds.unlike(negotiated, measured)
        for difference in unlike:
            results.say(f"  NOT ALIKE: {difference}")
        results.keep(
            options.directory,
            name,
            {
                "title": self.title,
                "unit": f"µs CPU per {self.load.unit}",
                "summary": rounds.medians(measured),
                "ratios": ratios,
                "negotiated": negotiated,
                "unlike": unlike,
                "rounds": [[turn.record() for turn in turns.values()] for turns in measured],
            },
            contestants,
        )

    def _timed(self, seconds: int) -> Wrk | H2load | Handshakes:
        return self.load if isinstance(self.load, H2load) else replace(self.load, seconds=seconds)


def against_peers(*peers: str, bar: float) -> tuple[Ratio, ...]:
    """The gate against the best of its peers."""
    return (Ratio("tidegate", peers, bar),)


NGINX = ("nginx", Program.NGINX, Setup())
HAPROXY = ("haproxy", Program.HAPROXY, Setup())
TIDEGATE = ("tidegate", Program.TIDEGATE, Setup())

CACHED = Setup(cache=Cache.ON)
CACHES = (
    ("nginx", Program.NGINX, CACHED),
    ("haproxy", Program.HAPROXY, CACHED),
    ("haproxy-large", Program.HAPROXY, Setup(cache=Cache.ON, haproxy_bufsize=65_536)),
    ("varnish", Program.VARNISH, CACHED),
    ("tidegate", Program.TIDEGATE, CACHED),
)


def hits(body: str, connections: int, bar: float, secured: bool = False) -> Comparison:
    """One response, stored before the first round, asked for again and again."""
    how = "TLS 1.3 connections" if secured else "keep-alive connections"
    # Varnish has no TLS of its own.
    entries = tuple(entry for entry in CACHES if not (secured and entry[1] is Program.VARNISH))
    return Comparison(
        f"{body} from the cache over {connections} {how}, metrics on, access log off",
        entries,
        Wrk(PATHS[body], secured=secured, connections=connections, served_by=ServedBy.CONTESTANT),
        against_peers(*(label for label, program, _ in entries if program is not Program.TIDEGATE), bar=bar),
    )


PATHS = {"1 KB": "/kept/1k", "62 KB": "/kept/62k"}

COMPARISONS = {
    "proxied-1k": Comparison(
        "1 KB proxied over 50 keep-alive connections, metrics on, access log off",
        (NGINX, HAPROXY, TIDEGATE),
        Wrk("/1k"),
        against_peers("nginx", "haproxy", bar=0.75),
    ),
    "proxied-1k-log": Comparison(
        "1 KB proxied over 50 keep-alive connections, metrics on, JSON access log",
        (
            ("nginx", Program.NGINX, Setup(log=AccessLog.FILE)),
            ("haproxy-stdout", Program.HAPROXY, Setup(log=AccessLog.FILE)),
            ("haproxy-ring", Program.HAPROXY, Setup(log=AccessLog.SINK)),
            ("tidegate", Program.TIDEGATE, Setup(log=AccessLog.FILE)),
        ),
        Wrk("/1k"),
        against_peers("nginx", "haproxy-stdout", "haproxy-ring", bar=0.75),
    ),
    "proxied-62k": Comparison(
        "62 KB proxied over 50 keep-alive connections, metrics on, access log off",
        (
            ("nginx-default", Program.NGINX, Setup(nginx_buffers="")),
            NGINX,
            (
                "nginx-large",
                Program.NGINX,
                Setup(nginx_buffers="proxy_buffers 4 64k; proxy_buffer_size 64k; proxy_busy_buffers_size 128k;"),
            ),
            HAPROXY,
            ("haproxy-large", Program.HAPROXY, Setup(haproxy_bufsize=65_536)),
            ("haproxy-splice", Program.HAPROXY, Setup(haproxy_splice=True)),
            TIDEGATE,
        ),
        Wrk("/62k"),
        against_peers("nginx-default", "nginx", "nginx-large", "haproxy", "haproxy-large", "haproxy-splice", bar=0.85),
    ),
    "tls-handshake": Comparison(
        "full TLS 1.3 handshakes, ECDSA P-256, X25519, each with one fixed answer",
        (NGINX, HAPROXY, TIDEGATE),
        Handshakes(),
        against_peers("nginx", "haproxy", bar=0.9),
    ),
    "tls-1k": Comparison(
        "1 KB proxied over 50 keep-alive TLS 1.3 connections",
        (NGINX, HAPROXY, TIDEGATE),
        Wrk("/1k", secured=True),
        against_peers("nginx", "haproxy", bar=0.8),
    ),
    "h2-1k": Comparison(
        "1 KB proxied over HTTP/2 and TLS, 10 connections with 32 streams each",
        (NGINX, HAPROXY, TIDEGATE),
        H2load("/1k", requests=100_000),
        against_peers("nginx", "haproxy", bar=1.0),
    ),
    "sites-10k": Comparison(
        "1 KB proxied, names of 10,000 sites asked for in turn, against one site",
        (
            ("nginx-1", Program.NGINX, Setup()),
            ("nginx-10k", Program.NGINX, Setup(sites=SITES)),
            ("tidegate-1", Program.TIDEGATE, Setup()),
            ("tidegate-10k", Program.TIDEGATE, Setup(sites=SITES)),
        ),
        Wrk("/1k", rotate_hosts=True),
        (Ratio("nginx-10k", ("nginx-1",)), Ratio("tidegate-10k", ("tidegate-1",), bar=1.1)),
    ),
    "hit-1k": hits("1 KB", 50, bar=0.7),
    "hit-1k-400": hits("1 KB", 400, bar=0.7),
    "hit-62k": hits("62 KB", 50, bar=0.95),
    "hit-62k-400": hits("62 KB", 400, bar=0.95),
    "hit-62k-tls": hits("62 KB", 50, bar=0.9, secured=True),
    "hit-62k-tls-400": hits("62 KB", 400, bar=0.9, secured=True),
}
