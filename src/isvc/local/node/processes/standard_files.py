"""The standard files of a process, and the node's ends of them."""

from __future__ import annotations

import asyncio
import os
import pty
from typing import NamedTuple


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
