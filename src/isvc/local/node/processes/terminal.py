"""A pseudo terminal whose size follows that of a client's terminal."""

from __future__ import annotations

import contextlib
import fcntl
import json
import struct
import termios
from typing import Final

from isvc.local.node.streams.channel import Channel

END_OF_INPUT: Final = b"\x04"


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
        """Width and height of every whole object so far; what is no size is skipped."""
        self._text = (self._text + data.decode("utf-8", "replace")).lstrip()[:4096]
        found = []
        while self._text:
            try:
                size, end = json.JSONDecoder().raw_decode(self._text)
            except ValueError:
                break
            self._text = self._text[end:].lstrip()
            if isinstance(size, dict):
                width, height = size.get("Width", 0), size.get("Height", 0)
                if all(isinstance(each, int) and 0 < each < 1 << 16 for each in (width, height)):
                    found.append((width, height))
        return found
