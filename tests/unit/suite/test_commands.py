"""No test is left without a command, and no command without somebody who runs it: CI, or whoever makes a release."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MAKEFILE = (ROOT / "Makefile").read_text()
RECIPES = dict(re.findall(r"^([a-z][a-z-]*):.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE))
TESTING = re.compile(r"\btests[./]|tools/fuzz|tools/kserve_e2e")
COMMANDS = sorted(name for name, recipe in RECIPES.items() if TESTING.search(recipe) and name != "lock")
IN_CI = {
    word
    for line in re.findall(r"^make (.*)", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    for word in line.split()
}


def test_commands_are_found() -> None:
    assert {"test", "test-kube", "soak", "fuzz", "takeover"} <= set(COMMANDS)


@pytest.mark.parametrize("command", [each for each in COMMANDS if each not in IN_CI])
def test_what_ci_does_not_run_belongs_to_a_release_and_has_a_date(command: str) -> None:
    assert f"`make {command}`" in (ROOT / "docs" / "releasing.md").read_text()
    row = re.search(rf"^\| `make {command}` .*\|(.*)\|$", (ROOT / "docs" / "reliability.md").read_text(), re.MULTILINE)
    assert row
    assert re.match(r" \d{4}-\d\d-\d\d: ", row[1])


def test_every_file_is_run_by_a_command() -> None:
    named = set(re.findall(r"\btests/[\w/.]+", "".join(RECIPES[each] for each in COMMANDS)))
    files = {str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")}
    assert [file for file in sorted(files) if not any(f"{file}/".startswith(f"{each}/") for each in named)] == []
