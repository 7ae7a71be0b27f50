"""Probes an event loop from inside: how late a timer of 5 ms is, and how much CPU the loop spends until it fires.

`python -m loop_probe` is `isvc up` with its loop probed, or, with the words of that program, its API server. Each
writes what it found into the folder PROBE when it ends. SIGUSR1 forgets what was found so far, SIGUSR2 ends the probe.
With STACKS it also says what ran when a timer waited for 20 ms of CPU.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

PERIOD, MUCH = 0.005, 0.02  # seconds


class Probe:
    def __init__(self, name: str) -> None:
        self._name = name
        self._late: list[float] = []
        self._held: list[float] = []
        self._stacks: Counter[str] = Counter()
        self._worked = time.thread_time()
        self._is_over = False

    async def run(self, work: Awaitable[Any]) -> Any:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGUSR1, lambda: (self._late.clear(), self._held.clear(), self._stacks.clear()))
        loop.add_signal_handler(signal.SIGUSR2, self._end)
        self._beat(loop, time.perf_counter())
        if os.environ.get("STACKS"):
            threading.Thread(target=self._sample, args=(threading.get_ident(),), daemon=True).start()
        try:
            return await work
        finally:
            self._end()
            self._report()

    def _report(self) -> None:
        found = {"late": self._late, "held": self._held, "stacks": self._stacks.most_common(40)}
        Path(os.environ["PROBE"], f"{self._name}.json").write_text(json.dumps(found))

    def _end(self) -> None:
        self._is_over = True

    def _beat(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        now, worked = time.perf_counter(), time.thread_time()
        self._late.append(max(0.0, now - due))
        self._held.append(worked - self._worked)
        self._worked = worked
        if not self._is_over:  # a timer of 5 ms is more work than all else of an idle machine
            loop.call_later(PERIOD, self._beat, loop, now + PERIOD)

    def _sample(self, thread: int) -> None:
        clock = time.pthread_getcpuclockid(thread)
        while not self._is_over:
            time.sleep(MUCH / 4)
            if time.clock_gettime(clock) - self._worked > MUCH:
                frames = traceback.extract_stack(sys._current_frames()[thread])
                shown = [each for each in frames[:-1] if "/isvc/" in each.filename][-6:] + frames[-1:]
                places = [f"{each.filename.rpartition('/isvc/')[2]}:{each.lineno} {each.name}" for each in shown[::-1]]
                self._stacks[" < ".join(places)] += 1


def probed(name: str, work: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def run(*given: Any) -> Any:
        return await Probe(name).run(work(*given))

    return run


def main() -> None:
    if sys.argv[1:2] == ["up"]:
        from isvc.cli import main as run
        from isvc.cli import up
        from isvc.local import api_server

        up._up = probed("controllers, node", up._up)
        api_server._PROGRAM = "loop_probe"
        run()
    else:
        from isvc.apiserver import run as server
        from isvc.local.api_server_program import main as serve

        server._serve = probed("API server", server._serve)
        serve(*sys.argv[1:])


if __name__ == "__main__":
    main()
