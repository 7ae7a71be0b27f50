"""Pulls the models of a multi-model server: what a file lists is downloaded and loaded, and nothing else is there.

The file is part of a ConfigMap's volume, which the kubelet renews. What could not be downloaded or loaded is tried
again; a model that was downloaded by an earlier process of the agent is not downloaded twice. No model waits for
another that takes long to load, and few download at a time, each in a process of its own.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import orjson

from isvc.pods.agent.model_server import ModelServer

log = logging.getLogger("isvc.pods.agent")

_FILE = "models.json"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_LOOK_EVERY = 1.0
_DOWNLOADS = 4  # at a time
_LONGEST_REASON = 1000  # of what others say, in the log; the storage initializer masks secrets of an address itself
_RETRY_AFTER = (2.0, 4.0, 8.0, 16.0, 30.0)


class Entry(msgspec.Struct, rename="camel"):
    model_name: str
    model_spec: dict[str, Any]


def parse(text: bytes) -> dict[str, dict[str, Any]]:
    """Returns models by name; raises msgspec.DecodeError, or ValueError for a name that is none."""
    entries = msgspec.json.decode(text, type=list[Entry]) if text.strip() else []
    for entry in entries:
        if not _NAME.fullmatch(entry.model_name):
            raise ValueError(f"{entry.model_name!r} is no name of a model")
    return {entry.model_name: entry.model_spec for entry in entries}


class Puller:
    def __init__(self, config_folder: Path, model_folder: Path, server: ModelServer) -> None:
        self._file = config_folder / _FILE
        self._folder = model_folder
        self._server = server
        self._wanted: Mapping[str, dict[str, Any]] = {}
        self._loaded: dict[str, dict[str, Any]] = {}
        self._failures: dict[str, int] = {}
        self._due: dict[str, float] = {}  # of models that failed
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._downloads = asyncio.Semaphore(_DOWNLOADS)
        self._text: bytes | None = None

    async def run(self) -> None:
        try:
            while True:
                if self._read():
                    self._due.clear()
                for name in dict.fromkeys((*self._wanted, *self._loaded)):
                    if self._is_due(name):
                        self._start(name)
                await asyncio.sleep(_LOOK_EVERY)
        finally:
            for task in tuple(self._under_way.values()):
                task.cancel()

    def _start(self, name: str) -> None:
        task = self._under_way[name] = asyncio.create_task(self._settle(name))
        task.add_done_callback(lambda _: self._under_way.pop(name))

    def _is_due(self, name: str) -> bool:
        if name in self._under_way or self._wanted.get(name) == self._loaded.get(name):
            return False
        return self._due.get(name, 0) <= asyncio.get_running_loop().time()

    def _read(self) -> bool:
        """Returns whether the file lists other models than before. One that cannot be read changes nothing."""
        try:
            text = self._file.read_bytes()
            if text == self._text:
                return False
            self._wanted, self._text = parse(text), text
        except FileNotFoundError:
            return False
        except (OSError, ValueError) as error:  # msgspec's errors are ValueErrors
            log.error("%s: %s", self._file, error)
            return False
        return True

    async def _settle(self, name: str) -> None:
        wanted = self._wanted.get(name)
        try:
            if name in self._loaded:
                await self._unload(name)
            if wanted is not None:
                async with self._downloads:
                    await download(wanted, self._folder / name)
                await self._repository(name, "load")
                self._loaded[name] = wanted
                log.info("model %s is loaded", name)
        except Exception as error:
            log.error("model %s: %s", name, error, exc_info=None if isinstance(error, PullError | OSError) else error)
            if self._wanted.get(name) == wanted:  # else it is another model that is tried next
                failures = self._failures[name] = self._failures.get(name, 0) + 1
                wait = _RETRY_AFTER[min(failures, len(_RETRY_AFTER)) - 1]
                self._due[name] = asyncio.get_running_loop().time() + wait
        else:
            self._failures.pop(name, None)

    async def _unload(self, name: str) -> None:
        await self._repository(name, "unload")
        del self._loaded[name]
        await asyncio.to_thread(shutil.rmtree, self._folder / name, ignore_errors=True)
        log.info("model %s is unloaded", name)

    async def _repository(self, name: str, verb: str) -> None:
        status, body = await self._server.post(f"/v2/repository/models/{name}/{verb}", b"{}")
        if status != 200:
            words = body[:_LONGEST_REASON].decode("utf-8", "replace")
            raise PullError(f"the model server does not {verb} it: {status} {words}")


class PullError(Exception):
    """A model is not there yet; says why."""


async def download(spec: Mapping[str, Any], folder: Path) -> None:
    """Downloads by the storage initializer; a file beside the model says of which spec it is."""
    digest = hashlib.sha256(orjson.dumps(spec, option=orjson.OPT_SORT_KEYS)).hexdigest()
    done = folder / f"SUCCESS.{digest}"
    if done.exists():
        return
    uri = str(spec.get("storageUri", ""))
    await asyncio.to_thread(_empty, folder)
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "isvc.pods.storage_initializer", uri, str(folder), stderr=asyncio.subprocess.PIPE
    )
    try:
        _, errors = await program.communicate()
    except asyncio.CancelledError:
        program.kill()
        raise
    if program.returncode:
        lines = errors.decode("utf-8", "replace").strip().splitlines()
        raise PullError(f"it was not downloaded: {lines[-1][:_LONGEST_REASON] if lines else program.returncode}")
    done.write_bytes(orjson.dumps(spec))


def _empty(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
