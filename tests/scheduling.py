"""Which worker runs what: the tests of a file stay together, and so do those of a third of the suites on `isvc up`.

So three workers start an `isvc up`, and wait half of their time for processes and probes; the others compute meanwhile.
"""

from __future__ import annotations

from typing import Any, Final

from xdist.scheduler import LoadFileScheduling

MACHINES: Final = 3


class Scheduling(LoadFileScheduling):
    def __init__(self, config: Any, log: Any) -> None:
        super().__init__(config, log)
        self._machines: dict[str, str] = {}

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        if not file.startswith("tests/up/"):
            return file
        return self._machines.setdefault(file, f"isvc up {len(self._machines) % MACHINES}")
