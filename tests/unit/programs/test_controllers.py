from __future__ import annotations

import subprocess
import sys

import pytest

from isvc.api.kinds import KINDS, KindRow
from isvc.programs.cluster_manifests import PROGRAMS
from isvc.programs.controllers import make_kind, reads_of
from isvc.serving.environment import Environment
from isvc.toolkit.cache.memory import MemoryReader

RECONCILED = [row for row in KINDS if row.manager]


@pytest.mark.parametrize("row", RECONCILED, ids=lambda row: row.resource.plural)
def test_the_folder_that_a_row_names_is_that_of_its_kind(row: KindRow):
    environment = Environment()
    kind = make_kind(row, MemoryReader(reads=reads_of(row, environment)), environment)
    assert (kind.resource, kind.api_type) == (row.resource, row.api_type)


def test_the_managers_of_the_table_are_programs():
    assert {row.manager for row in RECONCILED} == {program.name for program in PROGRAMS}


def test_a_command_that_needs_the_table_loads_no_controller():
    code = "import sys, isvc.insight.operations.kinds; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "isvc.api.kinds" in loaded
    assert [name for name in loaded if name.startswith(("isvc.controllers", "isvc.serving"))] == []
