"""The standard files of a process, and the node's ends of them."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import pty
import struct
import termios
from collections.abc import Iterator
from typing import Final, NamedTuple

from isvc.local.node.processes.descriptors import write_all
from isvc.local.node.streams.channel import Channel

END_OF_INPUT: Final = b"\x04"


class Files(NamedTuple):
    """The standard files of a process; a terminal is its only one, and controls it."""

    stdin: int = asyncio.subprocess.DEVNULL
    stdout: int = asyncio.subprocess.DEVNULL
    stderr: int = asyncio.subprocess.DEVNULL
    terminal: int | None = None

    @classmethod
    def of_terminal(cls, terminal: int) -> Files:
        return cls(terminal, terminal, terminal, terminal)


class Connected(NamedTuple):
    """A container's standard files, and where the node reads its output and writes its input."""

    files: Files
    output: int
    input: int | None

    @classmethod
    def open(cls, *, stdin: bool, tty: bool) -> Connected:
        if tty:
            ours, theirs = pty.openpty()
            return cls(Files.of_terminal(theirs), ours, os.dup(ours))
        output, write_end = os.pipe()
        if not stdin:
            return cls(Files(stdout=write_end, stderr=write_end), output, None)
        read_end, input_ = os.pipe()
        return cls(Files(read_end, write_end, write_end), output, input_)

    def close_files(self) -> None:
        for descriptor in {self.files.stdin, self.files.stdout} - {asyncio.subprocess.DEVNULL}:
            os.close(descriptor)


class StandardInput:
    """The node's end of a pipe or terminal, open until the process ends or somebody ends it before."""

    def __init__(self, descriptor: int, *, is_terminal: bool) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor: int | None = descriptor
        self._is_terminal = is_terminal

    async def feed(self, source: Channel, *, once: bool) -> None:
        """Passes on what a client sends. With `once` its end is that of the input, as soon as no other client sends."""
        with self._duplicate(source) as descriptor, contextlib.suppress(OSError):  # of a process that no longer reads
            try:
                while data := await source.read():
                    await write_all(descriptor, data)
            finally:
                if once:
                    self._end()

    async def resize(self, source: Channel) -> None:
        with self._duplicate(source) as descriptor:
            if self._is_terminal:
                await follow_size(descriptor, source)

    @contextlib.contextmanager
    def _duplicate(self, source: Channel) -> Iterator[int]:
        """Yields a descriptor of the client's own, which stays open when another client ends the input.

        It leads nowhere if that has happened already.
        """
        descriptor = os.dup(self._descriptor) if self._descriptor is not None else os.open(os.devnull, os.O_WRONLY)
        try:
            yield descriptor
        finally:
            os.close(descriptor)
            source.ignore()

    def _end(self) -> None:
        if self._is_terminal and self._descriptor is not None:
            os.write(self._descriptor, END_OF_INPUT)
        else:
            self.close()

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


async def follow_size(terminal: int, source: Channel) -> None:
    """Sets the sizes that the client sends, until it leaves."""
    sizes = Sizes()
    with contextlib.suppress(OSError):
        while data := await source.read():
            for width, height in sizes.read(data):
                fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
    source.ignore()


class Sizes:
    """Sizes of a terminal, in a stream of JSON objects."""

    def __init__(self) -> None:
        self._text = ""

    def read(self, data: bytes) -> list[tuple[int, int]]:
        """Returns width and height of every whole object so far; what is no size is skipped.

        Names are read in any case, as a kubelet does: kubectl writes Width, the JavaScript client width.
        """
        self._text = (self._text + data.decode("utf-8", "replace")).lstrip()[:4096]
        found = []
        while self._text:
            try:
                size, end = json.JSONDecoder().raw_decode(self._text)
            except ValueError:
                break
            self._text = self._text[end:].lstrip()
            if isinstance(size, dict):
                sides = {name.casefold(): side for name, side in size.items()}
                width, height = sides.get("width", 0), sides.get("height", 0)
                if all(isinstance(each, int) and 0 < each < 1 << 16 for each in (width, height)):
                    found.append((width, height))
        return found
