"""The example in CONTRIBUTING.md works: what it quotes can be applied to the tree as it is."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NEEDED = ("src", "charts", "tools", "pyproject.toml")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of what the package and its manifests are made from."""
    for name in NEEDED:
        if (source := ROOT / name).is_dir():
            shutil.copytree(source, tmp_path / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, tmp_path)
    return tmp_path


def run(tree: Path, *command: str | Path, given: str = "") -> str:
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    done = subprocess.run(command, cwd=tree, env=environment, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_kind_is_a_folder_and_a_row(tree: Path):
    (quoted,) = re.findall(r"^```diff\n(.*?)^```$", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL | re.MULTILINE)
    run(tree, "git", "apply", "-", given=quoted)
    run(tree, sys.executable, tree / "tools" / "manifests")
    assert "modelaliases/status" in (tree / "charts" / "isvc" / "templates" / "_rules.tpl").read_text()
    assert (tree / "charts" / "isvc-crds" / "templates" / "modelaliases.serving.kserve.io.yaml").exists()
    assert "3 passed" in run(
        tree, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=", "tests"
    )
