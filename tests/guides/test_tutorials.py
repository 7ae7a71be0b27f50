"""Quick starts and tutorials: what they tell people to type is typed, and what they promise comes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.documents import steps
from tests.up.machine import EXAMPLES, Machine, place, running

ROOT = EXAMPLES.parent
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
QUICK_STARTS = [ROOT / "README.md", ROOT / "docs" / "isvc-up.md"]
LONGEST = 300


@pytest.fixture(scope="module")
def home(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The home of somebody who has just started `isvc up`."""
    folder = tmp_path_factory.mktemp("home")
    here = Machine(folder / ".isvc")
    place(models, here)
    with running(here):
        yield folder


@pytest.mark.parametrize("page", QUICK_STARTS + TUTORIALS, ids=lambda path: path.stem)
def test_a_page(home: Path, page: Path, tmp_path: Path) -> None:
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "examples").symlink_to(EXAMPLES)
    programs = str(Path(sys.executable).parent)
    environment = {**os.environ, "HOME": str(home), "PATH": f"{programs}:{os.environ['PATH']}", "NO_COLOR": "1"}
    for name in ("KUBECONFIG", "ISVC_HOME"):
        environment.pop(name, None)
    remembered = ""  # what a terminal would keep from one block to the next
    for step in steps(page.read_text()):
        command = (
            [sys.executable, "-c", step.text] if step.language == "python" else ["bash", "-euc", remembered + step.text]
        )
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=LONGEST, check=False
        )
        printed = done.stdout + done.stderr
        assert done.returncode == 0, f"{step.text}\n{printed}"
        for line in step.output.splitlines():
            pattern = ".*".join(map(re.escape, line.split("…")))
            assert re.search(pattern, printed, re.DOTALL), f"{step.text}\nprinted\n{printed}\nwithout {line}"
        remembered += "".join(f"{line}\n" for line in step.text.splitlines() if re.match(r"(export |\w+=)", line))


def test_every_page_has_something_to_run() -> None:
    assert len(TUTORIALS) > 3
    assert all(len(steps(page.read_text())) > 2 for page in TUTORIALS)
    assert all(steps(page.read_text())[0].output for page in QUICK_STARTS)
