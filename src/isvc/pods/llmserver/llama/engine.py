"""Runs llama.cpp as a child process, restarts it when it dies, and talks to it over HTTP on loopback."""

from __future__ import annotations

import asyncio
import logging
import secrets
import sys
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import orjson

from isvc.pods.llmserver.errors import ApiError, BadRequest, EngineFailed, ServerError, Unavailable

log = logging.getLogger("isvc.pods.llmserver")

Json = dict[str, Any]

_CHECK_SECONDS = 10.0  # without an answer and without any use of the CPU, it hangs
_STUCK_SECONDS = 300.0  # at work: a batch of prompt tokens may take a minute with a large model on a small machine
_SMALL = 1 << 18  # bytes
_BYTES_OF_A_TOKEN = 256


class Engine:
    def __init__(
        self, settings: Mapping[str, Any], stuck_after: float = _STUCK_SECONDS, check_after: float = _CHECK_SECONDS
    ) -> None:
        self._stuck_after, self._check_after = stuck_after, min(check_after, stuck_after)
        self._settings = {**settings, "key": secrets.token_urlsafe(32)}
        self._process: asyncio.subprocess.Process | None = None
        self._session: aiohttp.ClientSession | None = None
        self._stopping = False
        self.max_model_len = 0
        self.vocabulary = 0  # number of tokens

    @property
    def ready(self) -> bool:
        return self._session is not None

    async def start(self) -> None:
        """Loads the model; returns when it answers."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "isvc.pods.llmserver.llama.process"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        self._process = process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(orjson.dumps(self._settings) + b"\n")
        line = await process.stdout.readline()
        if not line:
            await process.wait()
            raise ServerError(
                f"llama.cpp cannot load {self._settings['model']}: the file is damaged, too large for this machine or "
                "of an architecture that is not supported; the log has its reason"
            )
        self._session = aiohttp.ClientSession(
            orjson.loads(line)["address"],
            headers={"Authorization": f"Bearer {self._settings['key']}"},
            connector=aiohttp.TCPConnector(limit=0, force_close=True),  # an idle connection would occupy a thread
            timeout=aiohttp.ClientTimeout(total=None),
            read_bufsize=1 << 22,  # bytes in a line of a stream: log probabilities of many tokens are long
        )
        model = (await self.get("/v1/models"))["data"][0]["meta"]
        self.max_model_len, self.vocabulary = model["n_ctx"], model["n_vocab"]

    async def keep_running(self) -> None:
        """Starts llama.cpp again whenever it dies or is stuck; fails when it cannot be started."""
        while True:
            assert self._process is not None
            watchdog = asyncio.create_task(self._kill_when_stuck(self._process))
            status = await self._process.wait()
            watchdog.cancel()
            if self._stopping:
                return
            log.error("llama.cpp ended with status %s; loading the model again", status)
            await self._close_session()
            await self.start()
            log.info("the model is loaded again")

    async def _kill_when_stuck(self, process: asyncio.subprocess.Process) -> None:
        """Kills llama.cpp if it never answers a question that it answers between two steps of its work."""
        while True:
            await asyncio.sleep(self._check_after)
            question = asyncio.create_task(self.get("/slots"))
            try:
                if not await self._is_answered(question, process.pid):
                    log.error("llama.cpp answers nothing, and does not work on anything; ending it")
                    process.kill()
            except ApiError:
                continue  # it died, which is noticed elsewhere
            finally:
                question.cancel()

    async def _is_answered(self, question: asyncio.Task[Any], pid: int) -> bool:
        """Waits for as long as the process computes, and no longer than its longest step might take."""
        waited = 0.0
        while waited < self._stuck_after:
            before = _cpu_ticks(pid)
            if (await asyncio.wait({question}, timeout=self._check_after))[0]:
                question.result()
                return True
            if before is not None and _cpu_ticks(pid) == before:
                return False
            waited += self._check_after
        return False

    async def stop(self) -> None:
        self._stopping = True
        await self._close_session()
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    async def get(self, path: str) -> Any:
        return await self._request("GET", path, None)

    async def post(self, path: str, body: Json) -> Any:
        return await self._request("POST", path, body)

    async def stream(self, path: str, body: Json) -> AsyncGenerator[Json]:
        """Yields the events of a generation, decoded. Closing the iterator cancels the generation."""
        try:
            async with self._open("POST", path, {**body, "stream": True}) as response:
                await _raise_for_status(response)
                async for line in response.content:
                    if line.startswith((b"data: {", b"error: {")):
                        event = orjson.loads(line.partition(b": ")[2])
                        if "error" in event:
                            raise _refusal(event["error"])
                        yield event
        except (aiohttp.ClientError, ConnectionError, ValueError) as error:
            raise _failure() from error

    async def _request(self, method: str, path: str, body: Json | None) -> Any:
        try:
            async with self._open(method, path, body) as response:
                await _raise_for_status(response)
                return orjson.loads(await response.read())
        except (aiohttp.ClientError, ConnectionError, ValueError) as error:
            raise _failure() from error

    def _open(self, method: str, path: str, body: Json | None) -> aiohttp.client._RequestContextManager:
        if self._session is None:
            raise Unavailable("The model is being loaded again after a failure; try again in a few seconds.")
        try:
            data = None if body is None else orjson.dumps(body)
        except orjson.JSONEncodeError as error:  # nested too deeply, a number of more than 64 bits
            raise BadRequest(f"The request cannot be passed on: {error}") from None
        if data is not None and len(data) > max(_SMALL, _BYTES_OF_A_TOKEN * self.max_model_len):
            raise BadRequest(
                f"This model's maximum context length is {self.max_model_len} tokens, too few for the input."
            )
        return self._session.request(method, path, data=data)

    async def _close_session(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()


def _cpu_ticks(pid: int) -> int | None:
    """Returns how much CPU time a process has used; None where nobody knows."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return int(fields[11]) + int(fields[12])


def _failure() -> EngineFailed:
    return EngineFailed("The model failed while it answered this request.")


async def _raise_for_status(response: aiohttp.ClientResponse) -> None:
    if response.status < 400:
        return
    body = orjson.loads(await response.read())
    raise _refusal(body["error"] if isinstance(body, dict) and "error" in body else {"message": str(body)})


def _refusal(error: Json) -> ApiError:
    """Returns llama.cpp's own error. It answers 500, too, to requests that it cannot make sense of."""
    if error.get("type") == "exceed_context_size_error":
        return BadRequest(
            f"This model's maximum context length is {error['n_ctx']} tokens. However, your request has "
            f"{error['n_prompt_tokens']} input tokens. Please reduce the length of the input."
        )
    if error.get("type") == "unavailable_error":
        return Unavailable(str(error.get("message")))
    return BadRequest(str(error.get("message", "The request was refused.")))
