"""What CI makes of tests that are left out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
SKIPPING = """
import pytest

@pytest.mark.skipif(True, reason="needs kubectl and curl")
def test_marked(): ...

@pytest.mark.parametrize("case", [])
def test_nothing(case): ...

def test_asked():
    pytest.skip("needs kubectl and curl")
"""


def outcome(folder: Path, **environment: str) -> str:
    (folder / "conftest.py").write_text("from tests.skips import pytest_runtest_makereport\n")
    (folder / "test_skipping.py").write_text(SKIPPING)
    inherited = {name: value for name, value in os.environ.items() if name not in ("CI", "PYTEST_ADDOPTS")}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rN", str(folder)]
    environment = {**inherited, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **environment}
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    return ran.stdout.strip().splitlines()[-1]


def test_in_ci_a_skip_is_a_failure(tmp_path: Path) -> None:
    assert "1 failed, 2 errors" in outcome(tmp_path, CI="1")


def test_elsewhere_it_is_none(tmp_path: Path) -> None:
    assert "3 skipped" in outcome(tmp_path)
