"""Probes: does a container answer, as its spec asks?

Until a container is ready it is asked many times a second rather than once a period, and whenever it has said
something: servers do when they begin to serve. That only ever makes it ready sooner: failures count once a period, as
in Kubernetes.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import NamedTuple

from isvc.kube.objects import Object, dig
from isvc.kube.pods import port_number

HOST = "127.0.0.1"
_LEAST_PAUSE, _EAGER, _LONGEST_PAUSE = 0.02, 0.05, 1.0


class Answer(NamedTuple):
    ok: bool
    message: str = ""


class Asker:
    """Asks one container. `run` runs a command as an exec probe does and answers its exit code and output."""

    def __init__(
        self, container: Object, ports: Mapping[int, int], run: Callable[[list[str]], Awaitable[tuple[int, str]]]
    ) -> None:
        self._container = container
        self._ports = ports
        self._run = run

    async def ask(self, probe: Object) -> Answer:
        return await self.act(probe, probe.get("timeoutSeconds") or 1)

    async def act(self, handler: Object, seconds: float | None) -> Answer:
        """Returns what a probe or a hook says to do, in at most so many seconds."""
        try:
            async with asyncio.timeout(seconds):
                return await self._act(handler)
        except TimeoutError:
            return Answer(False, f"no answer within {seconds} s")
        except ConnectionRefusedError:
            return Answer(False, f"nothing listens on port {_port(handler)}: connection refused")
        except OSError as error:
            return Answer(False, str(error))

    async def _act(self, handler: Object) -> Answer:
        if action := handler.get("httpGet"):
            return await self._http(action)
        if action := handler.get("tcpSocket") or handler.get("grpc"):
            return await self._tcp(action)
        if action := handler.get("sleep"):
            await asyncio.sleep(action.get("seconds") or 0)
        if action := handler.get("exec"):
            code, output = await self._run(action.get("command") or [])
            return Answer(code == 0, output[-1024:] or f"exit code {code}")
        return Answer(True)

    def _address(self, action: Object) -> tuple[str, int]:
        port = port_number(self._container, action.get("port", 0))
        if port is None:
            raise OSError(f"the container has no port named {action.get('port')}")
        return HOST, self._ports.get(port, port)

    async def _tcp(self, action: Object) -> Answer:
        host, port = self._address(action)
        _, writer = await asyncio.open_connection(host, port)
        writer.close()
        return Answer(True)

    async def _http(self, action: Object) -> Answer:
        host, port = self._address(action)
        path = "/" + (action.get("path") or "/").removeprefix("/")
        headers = {"Host": f"{host}:{port}", "User-Agent": "kube-probe/isvc", "Accept": "*/*", "Connection": "close"}
        headers.update({item["name"]: item["value"] for item in action.get("httpHeaders") or []})
        text = f"GET {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        reader, writer = await asyncio.open_connection(host, port, ssl=_tls(action))
        try:
            writer.write(text.encode() + b"\r\n")
            status = (await reader.readline()).split(b" ", 2)
            code = int(status[1]) if len(status) > 1 and status[1].isdigit() else 0
            return Answer(200 <= code < 400, f"HTTP probe failed with statuscode: {code}")
        finally:
            writer.close()


def over_http(probe: Object, container: Object, path: str) -> Object:
    """Returns a probe that asks a server at the path, for one that only asks whether its port accepts connections.

    A server that hangs goes on accepting them. Ports that are named for gRPC are left alone.
    """
    port = dig(probe, "tcpSocket", "port")
    names = {each.get("containerPort"): str(each.get("name") or "") for each in container.get("ports") or ()}
    if not path or port is None or names.get(port, str(port)).startswith(("h2c", "grpc")):
        return probe
    words = (*(container.get("command") or ()), *(container.get("args") or ()))
    secure = {"scheme": "HTTPS"} if any(word.startswith("--ssl-") for word in words) else {}
    return {
        **{key: value for key, value in probe.items() if key != "tcpSocket"},
        "httpGet": {"path": path, "port": port, **secure},
    }


def _port(handler: Object) -> object:
    """Returns the port as the container's spec has it: a number or a name."""
    return next((action["port"] for action in handler.values() if isinstance(action, dict) and "port" in action), 0)


def _tls(action: Object) -> ssl.SSLContext | None:
    if action.get("scheme", "HTTP").upper() != "HTTPS":
        return None
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


NextWord = Callable[[], asyncio.Event]
"""Returns what is set when the container writes something the next time."""


async def answers(
    probe: Object, ask: Callable[[Object], Awaitable[Answer]], next_word: NextWord | None = None
) -> AsyncIterator[Answer]:
    """Yields one answer a period; with `next_word` a success after failures within a moment."""
    period = float(probe.get("periodSeconds") or 10)
    loop = asyncio.get_running_loop()
    await asyncio.sleep(probe.get("initialDelaySeconds") or 0)
    counted, pause = -period, _EAGER
    while True:
        word = next_word() if next_word else None  # what is said while it is asked counts
        answer = await ask(probe)
        if answer.ok or loop.time() - counted >= period:
            counted = loop.time()
            yield answer
        pause = _EAGER if answer.ok else min(pause * 1.5, _LONGEST_PAUSE)
        if answer.ok or word is None:
            await asyncio.sleep(period)
        else:
            await _rest(word, min(pause, period))


async def _rest(word: asyncio.Event, seconds: float) -> None:
    """Returns in so many seconds, or when the container has said something; not at once, as some never stop talking."""
    await asyncio.sleep(_LEAST_PAUSE)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(word.wait(), seconds - _LEAST_PAUSE)


class Tally:
    """Counts answers in a row; says what they come to once there are enough of them."""

    def __init__(self, probe: Object) -> None:
        self._needed = {True: probe.get("successThreshold") or 1, False: probe.get("failureThreshold") or 3}
        self._last: bool | None = None
        self._streak = 0

    def hear(self, ok: bool) -> bool | None:
        self._streak = self._streak + 1 if ok == self._last else 1
        self._last = ok
        return ok if self._streak >= self._needed[ok] else None
