"""A command beside a container's process, for `kubectl exec`: with the same program, environment, folders and limits.

It ends with its client and with its container, and whatever it started ends with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pty
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isvc.local.node.processes.descriptors import copy, write_all
from isvc.local.node.processes.process import Exit, Reaper, in_full, kill_group, spawn
from isvc.local.node.processes.reaper import MARK, kill_marked
from isvc.local.node.processes.standard_files import END_OF_INPUT, Files, follow_size
from isvc.local.node.sandbox.policy import Policy
from isvc.local.node.streams.channel import Channel
from isvc.local.node.streams.command_streams import Streams

Copy = Coroutine[Any, Any, None]

_KILLED = Exit(137, 9)


@dataclass(frozen=True, slots=True)
class Command:
    words: Sequence[str]
    env: Mapping[str, str]
    folder: Path
    policy: Policy | None = None
    tty: bool = False


async def run(command: Command, streams: Streams, reaper: Reaper, container_ended: asyncio.Event) -> Exit:
    """Runs it to its end, or to that of its container. Raises CannotStart."""
    ends = _Terminal() if command.tty else _Pipes(streams)
    mark = reaper.new_mark()
    env = {**command.env, MARK: mark, **({"TERM": "xterm-256color"} if command.tty else {})}
    try:
        starting = spawn(command.words, env, command.folder, command.policy, ends.files)
        process = await in_full(starting, lambda started: _end(started, mark))
    except BaseException:
        ends.close()
        raise
    finally:
        ends.close_files()
    reaper.add(process.pid)
    copying = [asyncio.create_task(each) for each in ends.inputs(streams)]
    outputs = [asyncio.create_task(each) for each in ends.outputs(streams)]
    died, killed = asyncio.create_task(process.wait()), asyncio.create_task(container_ended.wait())
    try:
        await asyncio.wait((died, killed), return_when=asyncio.FIRST_COMPLETED)
        ended = Exit.of(died.result()) if died.done() else _KILLED
        await _end(process, mark)
        await asyncio.gather(*outputs)  # whoever could write more is dead
        return ended
    finally:
        for task in (*copying, *outputs, killed):
            task.cancel()
        await _end(process, mark)
        await asyncio.gather(died, killed, *copying, *outputs, return_exceptions=True)
        reaper.remove(process.pid)
        ends.close()


async def _end(process: asyncio.subprocess.Process, mark: str) -> None:
    kill_group(process.pid)
    await asyncio.to_thread(kill_marked, mark)
    await process.wait()


class _Pipes:
    """A pipe for each of the standard files that the client wants."""

    def __init__(self, streams: Streams) -> None:
        self._ours: dict[str, int] = {}
        theirs: dict[str, int] = {}
        for name in ("stdin", "stdout", "stderr"):
            if name in streams:
                read_end, write_end = os.pipe()
                theirs[name], self._ours[name] = (read_end, write_end) if name == "stdin" else (write_end, read_end)
                os.set_blocking(self._ours[name], False)
        self.files = Files(**theirs)
        self._theirs = list(theirs.values())

    def inputs(self, streams: Streams) -> list[Copy]:
        return [self._feed(streams["stdin"], self._ours["stdin"])] if "stdin" in self._ours else []

    async def _feed(self, source: Channel, descriptor: int) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read():
                await write_all(descriptor, data)
        source.ignore()
        os.close(self._ours.pop("stdin"))

    def outputs(self, streams: Streams) -> list[Copy]:
        names = [name for name in ("stdout", "stderr") if name in self._ours]
        return [copy(self._ours[name], streams[name].write) for name in names]

    def close_files(self) -> None:
        for descriptor in self._theirs:
            os.close(descriptor)

    def close(self) -> None:
        for descriptor in self._ours.values():
            os.close(descriptor)
        self._ours = {}


class _Terminal:
    def __init__(self) -> None:
        self._ours, self._theirs = pty.openpty()
        os.set_blocking(self._ours, False)
        self.files = Files.of_terminal(self._theirs)

    def inputs(self, streams: Streams) -> list[Copy]:
        tasks: list[Copy] = [follow_size(self._ours, streams["resize"])] if "resize" in streams else []
        return [*tasks, self._feed(streams["stdin"])] if "stdin" in streams else tasks

    async def _feed(self, source: Channel) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read():
                await write_all(self._ours, data)
            await write_all(self._ours, END_OF_INPUT)
        source.ignore()

    def outputs(self, streams: Streams) -> list[Copy]:
        return [copy(self._ours, streams["stdout"].write)] if "stdout" in streams else []

    def close_files(self) -> None:
        os.close(self._theirs)

    def close(self) -> None:
        os.close(self._ours)


def rename_in_tar(asked: Sequence[str], translated: Sequence[str]) -> list[str]:
    """Returns the translated command; a tar that makes an archive gives paths the names that were asked for.

    `kubectl cp` runs tar in the container. A path of the container is another one on this machine, which tar would
    write into the archive.
    """
    if len(asked) < 3 or asked[0] != "tar" or "c" not in asked[1].lstrip("-"):
        return list(translated)
    renamed = [
        f"--transform=s,^{_escape(path.strip('/'))},{_escape(name.strip('/'))},"
        for name, path in zip(asked[2:], translated[2:], strict=True)
        if name != path
    ]
    return [*translated, *renamed]


def _escape(text: str) -> str:
    return "".join(f"\\{letter}" if letter in r".*[]\^$,&" else letter for letter in text)
