from __future__ import annotations

import subprocess
import sys

import pytest

LARGE = ("aiohttp", "re2", "pydantic", "hypothesis", "numpy")


@pytest.mark.parametrize("program", ["isvc_manager", "llmisvc_manager"])
def test_a_manager_loads_no_library_that_only_other_programs_need(program):
    code = f"import sys, isvc.programs.{program}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "msgspec" in loaded
    assert not {name.partition(".")[0] for name in loaded} & {*LARGE}
