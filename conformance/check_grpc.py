#!/usr/bin/env python3
"""gRPC's own client and server (grpcio) through the gate: unary, streaming, trailers, errors, deadlines.

The group speaks HTTP/2 to the server; the client speaks it to the gate, plain and over TLS. Messages
are bytes without a schema, which gRPC allows: what is tested is the transport.
"""

import concurrent.futures
import threading
import time

import rig

rig.in_venv()

import grpc  # noqa: E402

cancelled = threading.Event()


def unary(request, context):
    context.set_trailing_metadata((("x-sum", str(len(request))), ("x-data-bin", b"\0\1\xff")))
    return request.upper()


def fails(_request, context):
    context.set_trailing_metadata((("x-why", "asked"),))
    context.abort(grpc.StatusCode.FAILED_PRECONDITION, "not now: 100 % of nothing")


def slow(_request, context):
    while context.is_active():
        time.sleep(0.05)
    cancelled.set()
    return b""


def deadline(_request, context):
    return str(context.time_remaining()).encode()


def counts(request, _context):
    for number in range(int(request)):
        yield str(number).encode()


def breaks(_request, context):
    yield b"one"
    context.abort(grpc.StatusCode.DATA_LOSS, "half way")


def sums(requests, _context):
    return str(sum(int(request) for request in requests)).encode()


def talks(requests, _context):
    for request in requests:
        yield request.upper()


def serve(port):
    handlers = {
        "Unary": grpc.unary_unary_rpc_method_handler(unary),
        "Fails": grpc.unary_unary_rpc_method_handler(fails),
        "Slow": grpc.unary_unary_rpc_method_handler(slow),
        "Deadline": grpc.unary_unary_rpc_method_handler(deadline),
        "Counts": grpc.unary_stream_rpc_method_handler(counts),
        "Breaks": grpc.unary_stream_rpc_method_handler(breaks),
        "Sums": grpc.stream_unary_rpc_method_handler(sums),
        "Talks": grpc.stream_stream_rpc_method_handler(talks),
    }
    options = [("grpc.max_receive_message_length", -1)]
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(80), options=options)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Test", handlers),))
    server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    return server


def call(check, name, channel):
    one = lambda method: channel.unary_unary(f"/test.Test/{method}")

    reply, done = one("Unary").with_call(b"hello", timeout=10)
    trailers = dict(done.trailing_metadata())
    check.check(f"{name}: a unary call", reply == b"HELLO" and done.code() is grpc.StatusCode.OK)
    check.check(f"{name}: trailers", trailers.get("x-sum") == "5" and trailers.get("x-data-bin") == b"\0\1\xff", trailers)
    large = b"a" * 3_500_000
    check.check(f"{name}: a large message", one("Unary")(large, timeout=30) == large.upper())

    try:
        one("Fails")(b"", timeout=10)
        check.check(f"{name}: an error is an error", False)
    except grpc.RpcError as error:
        right = error.code() is grpc.StatusCode.FAILED_PRECONDITION and error.details() == "not now: 100 % of nothing"
        check.check(f"{name}: an error keeps code, text and trailers",
                    right and ("x-why", "asked") in tuple(error.trailing_metadata()), error)
    try:
        one("Missing")(b"", timeout=10)
        check.check(f"{name}: a missing method is an error", False)
    except grpc.RpcError as error:
        check.check(f"{name}: a missing method is UNIMPLEMENTED", error.code() is grpc.StatusCode.UNIMPLEMENTED, error)

    cancelled.clear()
    started = time.monotonic()
    try:
        one("Slow")(b"", timeout=0.5)
        check.check(f"{name}: a deadline ends a call", False)
    except grpc.RpcError as error:
        in_time = time.monotonic() - started < 3
        check.check(f"{name}: a deadline ends a call", error.code() is grpc.StatusCode.DEADLINE_EXCEEDED and in_time, error)
    check.check(f"{name}: the server learns of it", cancelled.wait(5))
    remaining = float(one("Deadline")(b"", timeout=20))
    check.check(f"{name}: the server knows the deadline", 10 < remaining < 21, remaining)
    cancelled.clear()
    future = one("Slow").future(b"", timeout=30)
    time.sleep(0.3)
    future.cancel()
    check.check(f"{name}: a cancelled call ends at the server", cancelled.wait(5))

    replies = list(channel.unary_stream("/test.Test/Counts")(b"1000", timeout=20))
    check.check(f"{name}: a server's stream", replies == [str(n).encode() for n in range(1000)], len(replies))
    stream = channel.unary_stream("/test.Test/Breaks")(b"", timeout=10)
    try:
        first = next(stream)
        next(stream)
        check.check(f"{name}: a stream that breaks", False)
    except grpc.RpcError as error:
        check.check(f"{name}: a stream that breaks", first == b"one" and error.code() is grpc.StatusCode.DATA_LOSS, error)
    total = channel.stream_unary("/test.Test/Sums")((str(n).encode() for n in range(1000)), timeout=20)
    check.check(f"{name}: a client's stream", total == str(sum(range(1000))).encode(), total)

    # Each word waits for the answer to the one before it: nothing may be held back on either way.
    answered = threading.Semaphore(1)
    def words():
        for word in (b"one", b"two", b"three"):
            answered.acquire()
            yield word
    replies = []
    for reply in channel.stream_stream("/test.Test/Talks")(words(), timeout=10):
        replies.append(reply)
        answered.release()
    check.check(f"{name}: both ways at once", replies == [b"ONE", b"TWO", b"THREE"], replies)

    futures = [one("Unary").future(str(n).encode(), timeout=20) for n in range(200)]
    check.check(f"{name}: many at once", all(f.result() == str(n).encode() for n, f in enumerate(futures)))


def main():
    check = rig.Rig()
    port = rig.free_port()
    server = serve(port)
    plain, secure = check.gate(f"127.0.0.1:{port}", protocol="http2")
    credentials = grpc.ssl_channel_credentials((check.directory / "ca.pem").read_bytes())
    options = [("grpc.max_receive_message_length", -1), ("grpc.enable_http_proxy", 0)]
    channels = {
        "plain": grpc.insecure_channel(f"127.0.0.1:{plain}", options=options),
        "TLS": grpc.secure_channel(f"localhost:{secure}", credentials, options=options),
    }
    for name, channel in channels.items():
        try:
            call(check, name, channel)
        except grpc.RpcError as error:
            check.check(f"{name}: no unexpected error", False, error)
        channel.close()
    server.stop(0)
    check.finish()


main()
