"""The standard input of a container's process, to which the clients of `kubectl attach` write."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from isvc.local.node.processes.descriptors import write_all
from isvc.local.node.processes.terminal import END_OF_INPUT, follow_size
from isvc.local.node.streams.channel import Channel


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
        """A descriptor of the client's own, which stays open when another client ends the input.

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
