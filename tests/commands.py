"""`isvc` commands, each a process of its own that is forked from one in which their modules are imported already.

Tests run hundreds of commands; imports are most of what one costs. What a command imports, and when, is a matter of
`tests/unit/cli/test_frame.py`.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

DEADLINE = 120.0
_IMPORTED: Final = (
    "aiohttp",
    "isvc.apiserver.tables.columns",
    "isvc.cli.explain",
    "isvc.insight.diagnosis.gather",
    "isvc.insight.operations.endpoint",
    "isvc.insight.rendering.differences",
    "isvc.insight.rendering.effective",
    "isvc.toolkit.client",
)


def run_isvc(*words: str, env: Mapping[str, str] = os.environ) -> subprocess.CompletedProcess[str]:
    """Returns what became of `isvc WORDS` in this environment."""
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload(list(_IMPORTED))
    with TemporaryDirectory() as folder:
        outputs = Path(folder, "out"), Path(folder, "err")
        process = forks.Process(target=_run, args=(words, dict(env), *outputs))
        process.start()
        process.join(DEADLINE)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(["isvc", *words], DEADLINE)
        out, err = (each.read_text() for each in outputs)
        return subprocess.CompletedProcess(["isvc", *words], process.exitcode, out, err)


def _run(words: tuple[str, ...], env: dict[str, str], out: Path, err: Path) -> None:
    os.environ.clear()
    os.environ.update(env)
    for file, stream in ((out, sys.stdout), (err, sys.stderr)):
        with file.open("wb") as opened:
            os.dup2(opened.fileno(), stream.fileno())
    from isvc.cli import main

    main(list(words), prog_name="isvc")
