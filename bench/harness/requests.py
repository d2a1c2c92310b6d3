"""The requests that a firewall is measured with, as they go over the wire: ordinary ones, and hostile ones."""

from collections.abc import Callable
from dataclasses import dataclass

from .certificates import HOST

TINY = f"Host: {HOST}\r\nUser-Agent: curl/8\r\nAccept: */*\r\n"

BROWSER = (
    f"Host: {HOST}\r\n"
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:142.0) Gecko/20100101 Firefox/142.0\r\n"
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n"
    "Accept-Language: en-US,en;q=0.5\r\n"
    "Accept-Encoding: gzip, deflate, br, zstd\r\n"
    f"Referer: https://{HOST}/catalogue/shoes/?page=3&sort=price\r\n"
    "Cookie: session=8f14e45fceea167a5a36dedd4bea2543; _ga=GA1.2.1033501218.1368477899; theme=dark; "
    "consent=analytics%3Dyes%26ads%3Dno\r\n"
    "Upgrade-Insecure-Requests: 1\r\n"
    "Sec-Fetch-Dest: document\r\n"
    "Sec-Fetch-Mode: navigate\r\n"
    "Sec-Fetch-Site: same-origin\r\n"
)

WORDS = (
    "harbour morning the gate opens and every boat waits for its turn bridge of tide candle garden lamp river "
    "letter winter stone kitchen yellow paper market over under quiet copper window to in a with summer basket "
    "feather mountain silver thread carries between before after early late wooden table round small large blue"
).split()

FORM = "application/x-www-form-urlencoded"
JSON = "application/json"


@dataclass(frozen=True)
class Case:
    """One request; `bar` is the share of nginx's cost that inspecting it may have."""

    name: str
    make: Callable[[], bytes]
    bar: float | None = None


def _get(target: str, fields: str) -> bytes:
    return f"GET /app{target} HTTP/1.1\r\n{fields}\r\n".encode()


def _post(kind: str, body: bytes) -> bytes:
    head = f"POST /app/api/orders HTTP/1.1\r\n{BROWSER}Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def _prose(seed: int, words: int) -> str:
    """Words that no other seed has in this order: no value is like another, as in real bodies."""
    state, chosen = seed * 2_654_435_761 + words, []
    for _ in range(words):
        state = (state * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407) & 0xFFFF_FFFF_FFFF_FFFF
        chosen.append(WORDS[(state >> 33) % len(WORDS)])
    return " ".join(chosen)


def _form() -> bytes:
    return "&".join(f"field{n}={_prose(n, 14).replace(' ', '+')}" for n in range(20)).encode()


def _json(size: int) -> bytes:
    items, length = [], 12
    while length < size:
        n = len(items)
        items.append(
            f'{{"id":{n},"name":"{_prose(n, 3)}","price":{n * 3}.{n % 100:02},"tags":["{_prose(n + 1, 1)}",'
            f'"{_prose(n + 2, 1)}"],"note":"{_prose(n, 130)}","ok":true}}'
        )
        length += len(items[-1]) + 1
    return ('{"items":[' + ",".join(items) + "]}").encode()


def _multipart(size: int) -> bytes:
    state, photo = 12_345, bytearray()
    while len(photo) < size:
        state = (state * 1_664_525 + 1_013_904_223) & 0xFFFF_FFFF
        photo.append(state >> 24)
    return (
        b'--XbOuNdArYx\r\nContent-Disposition: form-data; name="title"\r\n\r\nHoliday\r\n--XbOuNdArYx\r\n'
        b'Content-Disposition: form-data; name="photo"; filename="beach.jpg"\r\nContent-Type: image/jpeg\r\n\r\n'
        + bytes(photo)
        + b"\r\n--XbOuNdArYx--\r\n"
    )


ORDINARY = (
    Case("tiny", lambda: _get("/", TINY), 1 / 30),
    Case("browser", lambda: _get("/shoes/?page=4&sort=price&q=running+shoes+for+rain", BROWSER), 1 / 30),
    Case("form-2k", lambda: _post(FORM, _form()), 1 / 30),
    Case("json-15k", lambda: _post(JSON, _json(15_000)), 1 / 50),
    Case("json-100k", lambda: _post(JSON, _json(100_000)), 1 / 50),
    Case(
        "multipart-200k",
        lambda: _post("multipart/form-data; boundary=XbOuNdArYx", _multipart(200_000)),
        1 / 40,
    ),
    Case(
        "sqli",
        lambda: _get("/shoes/?id=1%27%20UNION%20SELECT%20username,password%20FROM%20users--%20-", BROWSER),
        1 / 30,
    ),
)

HOSTILE = (
    Case("quotes-40k", lambda: _post(FORM, b"q=" + b"'\"" * 20_000)),
    Case("arguments-1000", lambda: _post(FORM, "&".join(f"a{n}=%27;select+{n}--" for n in range(999)).encode())),
    Case("braces-128k", lambda: _post(FORM, b"q=" + b"{{" * 65_000)),
    Case("json-deep", lambda: _post(JSON, b"[" * 500 + b"]" * 500)),
    Case(
        "json-128k",
        lambda: _post(JSON, b'{"a":"' + b"<script>alert(1) or 1=1 -- ../../etc/passwd ;cat " * 2_600 + b'"}'),
    ),
)
