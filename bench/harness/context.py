"""What looking things up costs: a marketplace's prices, limits and blocked customers, told by a feed.

Each of the five collections holds 10,000 values. A request looks 50 of them up, ten of each collection, while
a feed writes 1,000 values a second through the admin API. Beside it runs the same gate with as many rules of the
same operator that look at the request itself, and one without rules.
"""

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from . import results, rounds
from .certificates import HOST
from .contestants import Contestant, Program, Setup, line_up
from .loads import Wrk
from .processes import Failed
from .rounds import Ratio
from .stage import Options, running

VALUES = 10_000
LOOK_UPS = 10
"""Of each collection."""
FEED_S = 0.05
FEED_VALUES = 50
"""What the feed writes at once: 1,000 values a second."""

COLLECTIONS = {"global": "global", "ip": "127.0.0.1", "resource": "/1k", "session": HOST, "user": HOST}
"""Each with the key under which a request looks."""

REQUEST = ("REQUEST_URI", "REQUEST_METHOD", "REQUEST_PROTOCOL", "REQUEST_LINE", "REMOTE_ADDR")
"""What a request looks at that looks nothing up."""

OPEN = (
    'SecAction "id:1,phase:1,pass,nolog,initcol:global=global,initcol:ip=%{REMOTE_ADDR},'
    'initcol:resource=%{REQUEST_FILENAME},setsid:%{REQUEST_HEADERS.Host},setuid:%{REQUEST_HEADERS.Host}"\n'
)


def _rules(variables: list[str]) -> str:
    return "".join(
        f'SecRule {variable} "@streq blocked-{n}" "id:{100 + n},phase:1,deny,status:403,msg:\'Blocked\'"\n'
        for n, variable in enumerate(variables)
    )


def _looking_up() -> str:
    names = [f"{collection.upper()}:value{n * 997 % VALUES}" for collection in COLLECTIONS for n in range(LOOK_UPS)]
    return OPEN + _rules(names)


def _looking_at_the_request() -> str:
    return _rules([variable for variable in REQUEST for _ in range(LOOK_UPS)])


def run(name: str, options: Options) -> None:
    """Look-ups and a feed against none of both, in turns."""
    contestants = line_up(
        ("tidegate", Program.TIDEGATE, Setup()),
        ("tidegate-rules", Program.TIDEGATE, Setup(rules=_looking_at_the_request())),
        ("tidegate-context", Program.TIDEGATE, Setup(rules=_looking_up())),
    )
    if not contestants:
        results.say("  nothing to measure: only the gate does this")
        return
    subject = contestants[-1]
    load = Wrk("/1k", seconds=options.seconds)
    with running(contestants) as origin:
        _fill(subject)
        with _feeding(subject) as feed:
            measured = rounds.alternate(contestants, load, origin, options.rounds, results.say)
        counted = _ask(subject, "GET", "/status?format=json")["context"]
    written = feed.written / feed.seconds
    results.say(f"  the feed wrote {written:.0f} values a second; {counted['entries']} variables are kept")
    ratios = [Ratio("tidegate-context", ("tidegate-rules",), 1.15), Ratio("tidegate-context", ("tidegate",))]
    ratios = [ratio.of(measured) for ratio in ratios]
    for ratio in ratios:
        results.say_ratio(ratio)
    results.keep(
        options.directory,
        name,
        {
            "title": f"{LOOK_UPS * len(COLLECTIONS)} look-ups a request while a feed writes",
            "unit": "µs CPU per request",
            "summary": rounds.medians(measured),
            "ratios": ratios,
            "feed": {"values_per_second": written, "context": counted},
            "rounds": [[turn.record() for turn in turns.values()] for turns in measured],
        },
        contestants,
    )


def _fill(contestant: Contestant) -> None:
    """Values of the record that requests look at in `global`, else ten of it and others of other records."""
    for collection, key in COLLECTIONS.items():
        looked_up = {n * 997 % VALUES for n in range(LOOK_UPS)}
        keys = (key if collection == "global" or n in looked_up else f"other-{n}" for n in range(VALUES))
        lines = "".join(f"{collection},{key},value{n},{n},forever\n" for n, key in enumerate(keys))
        written = _ask(contestant, "POST", "/context/load", lines)["written"]
        if written != VALUES:
            raise Failed(f"{contestant.label} took {written} of {VALUES} values")


class _Feed:
    """Writes values until it is stopped, at a steady rate."""

    def __init__(self, contestant: Contestant):
        self.written = 0
        self.seconds = 0.0
        self.failure: Exception | None = None
        self._contestant = contestant
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._write)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()
        if self.failure:
            raise Failed(f"the feed ended: {self.failure}")

    def _write(self) -> None:
        begin = time.monotonic()
        collections = list(COLLECTIONS)
        try:
            while not self._stopped.wait(max(0.0, begin + self.written / FEED_VALUES * FEED_S - time.monotonic())):
                numbers = range(self.written, self.written + FEED_VALUES)
                lines = "".join(self._line(collections[n % len(collections)], n) for n in numbers)
                self.written += _ask(self._contestant, "POST", "/context/load", lines)["written"]
                self.seconds = time.monotonic() - begin
        except (OSError, Failed) as failure:
            self.failure = failure

    @staticmethod
    def _line(collection: str, n: int) -> str:
        # Every value has its turn, those that requests look at, too.
        number = n // len(COLLECTIONS) * 997 % VALUES
        looked_up = number in {n * 997 % VALUES for n in range(LOOK_UPS)}
        key = COLLECTIONS[collection] if collection == "global" or looked_up else f"other-{number}"
        return f"{collection},{key},value{number},{n},forever\n"


@contextmanager
def _feeding(contestant: Contestant) -> Iterator[_Feed]:
    feed = _Feed(contestant)
    feed.start()
    try:
        yield feed
    finally:
        feed.stop()


def _ask(contestant: Contestant, method: str, path: str, body: str = "") -> dict:
    connection = http.client.HTTPConnection("localhost", timeout=30)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(str(contestant.work / "admin.sock"))
    fields = {"Accept": "application/json", "Tidegate-Client": "bench"}
    connection.request(method, path, body.encode(), fields)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    if answer.status != 200:
        raise Failed(f"{contestant.label}: {method} {path}: {answer.status} {text}")
    return json.loads(text)
