"""A file on its way: which parts of it have arrived, remembered beside it, so that another process can go on.

What was remembered counts only for the same version of the file, and only until the machine is started anew: what a
process wrote outlives the process, but perhaps not a loss of power.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_SAVE_SECONDS: Final = 1.0
_CHUNK: Final = 1 << 20
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")


@dataclass(slots=True)
class Part:
    """Bytes from `start` to before `end`; where the end is not known it is None."""

    start: int
    end: int | None = None
    got: int = 0
    busy: bool = False

    @property
    def position(self) -> int:
        return self.start + self.got

    @property
    def done(self) -> bool:
        return self.position == self.end


class Partial:
    def __init__(self, target: Path, notes: Path) -> None:
        """`notes` is a folder of its own for what is remembered."""
        self._notes = notes / hashlib.sha256(os.fsencode(target)).hexdigest()[:32]
        self._notes.parent.mkdir(exist_ok=True)
        self._file = os.open(target, os.O_RDWR | os.O_CREAT, 0o644)
        self._lock = threading.Lock()
        self._saved = time.monotonic()
        self.version, self.size, self.parts = self._recall() or ("", None, [Part(0)])
        if not self.version:
            os.ftruncate(self._file, 0)  # nobody knows what it is
        elif self.complete:
            self.parts[-1].got -= 1  # the store is asked once more, whether it is still the same and how it sums up

    @property
    def length(self) -> int:
        return sum(part.got for part in self.parts)

    @property
    def complete(self) -> bool:
        return all(part.done for part in self.parts)

    def take(self) -> Part | None:
        """Returns the first part that is missing and that nobody is bringing."""
        with self._lock:
            for part in self.parts:
                if not part.busy and not part.done:
                    part.busy = True
                    return part
        return None

    def split(self, part: Part, size: int) -> None:
        """Makes parts of that size of what is missing of one whose end is known."""
        with self._lock:
            assert part.end is not None
            ends = [*range(part.position + size, part.end, size), part.end]
            starts = [part.position, *ends[:-1]]
            part.end = ends[0]
            index = self.parts.index(part) + 1
            self.parts[index:index] = [Part(start, end) for start, end in zip(starts[1:], ends[1:], strict=True)]

    def write(self, part: Part, data: bytes) -> None:
        view = memoryview(data)
        while view:
            written = os.pwrite(self._file, view, part.position)
            part.got += written
            view = view[written:]
        if time.monotonic() - self._saved > _SAVE_SECONDS:
            self.save()

    def read(self, start: int) -> Iterator[bytes]:
        while chunk := os.pread(self._file, _CHUNK, start):
            yield chunk
            start += len(chunk)

    def start_over(self) -> None:
        os.ftruncate(self._file, 0)
        self.version, self.size, self.parts = "", None, [Part(0)]

    def save(self) -> None:
        """Remembers what has arrived; without a version nobody could tell what it belongs to."""
        with self._lock:
            self._saved = time.monotonic()
            if self.version:
                parts = [(part.start, part.end, part.got) for part in self.parts]
                document = {"boot": _boot(), "version": self.version, "size": self.size, "parts": parts}
                fresh = self._notes.with_suffix(".new")
                fresh.write_text(json.dumps(document))
                fresh.replace(self._notes)

    def close(self) -> None:
        os.close(self._file)

    def _recall(self) -> tuple[str, int | None, list[Part]] | None:
        try:
            known: dict[str, Any] = json.loads(self._notes.read_text())
            parts = [Part(start, end, got) for start, end, got in known["parts"]]
            on_disk = os.fstat(self._file).st_size
            if known["boot"] == _boot() and 0 < max(part.position for part in parts) <= on_disk:
                return known["version"], known["size"], parts
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return None


def _boot() -> str:
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return ""
