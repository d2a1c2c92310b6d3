#!/usr/bin/env python3
"""WebSocket client and server of the Python package `websockets`, through the gate, plain and TLS."""

import asyncio
import contextlib
import ssl

import rig

rig.in_venv()

import websockets  # noqa: E402


async def serve(socket):
    with contextlib.suppress(websockets.ConnectionClosed):
        await converse(socket)


async def converse(socket):
    async for message in socket:
        if message == "close":
            await socket.close(4001, "asked")
        else:
            await socket.send(message)


async def talk(check, name, uri, tls):
    connect = lambda: websockets.connect(uri, ssl=tls, subprotocols=["chat"], max_size=None, proxy=None)
    async with connect() as socket:
        await socket.send("hello")
        check.check(f"{name}: text comes back", await socket.recv() == "hello")
        data = bytes(range(256)) * 8_000
        await socket.send(data)
        check.check(f"{name}: two megabytes come back", await socket.recv() == data)
        for number in range(200):
            await socket.send(str(number))
        replies = [await socket.recv() for _ in range(200)]
        check.check(f"{name}: order is kept", replies == [str(number) for number in range(200)])
        pong = await socket.ping()
        check.check(f"{name}: ping is answered", await asyncio.wait_for(pong, 5) is not None)
        check.check(f"{name}: the subprotocol is agreed", socket.subprotocol == "chat", socket.subprotocol)
        await asyncio.sleep(2)
        await socket.send("still there")
        check.check(f"{name}: silence does not end it", await socket.recv() == "still there")
    async with connect() as socket:
        await socket.send("close")
        await socket.wait_closed()
        check.check(f"{name}: the server's close comes through", socket.close_code == 4001, socket.close_code)
    async def one(number):
        async with connect() as socket:
            await socket.send(str(number))
            return await socket.recv() == str(number)
    together = await asyncio.gather(*(one(number) for number in range(50)))
    check.check(f"{name}: fifty at once", all(together), together)


async def main():
    check = rig.Rig()
    port = rig.free_port()
    async with websockets.serve(serve, "127.0.0.1", port, subprotocols=["chat"], max_size=None):
        plain, secure = await asyncio.to_thread(check.gate, f"127.0.0.1:{port}")
        tls = ssl.create_default_context(cafile=check.directory / "ca.pem")
        ways = {
            "plain": (f"ws://127.0.0.1:{plain}/socket", None),
            "TLS": (f"wss://localhost:{secure}/socket", tls),
        }
        for name, (uri, context) in ways.items():
            try:
                await asyncio.wait_for(talk(check, name, uri, context), 60)
            except Exception as error:
                check.check(f"{name}: no error", False, repr(error))
    check.finish()


asyncio.run(main())
