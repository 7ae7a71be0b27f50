"""Every deliberate difference that docs/decisions names has a test, and the test exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
TESTS: dict[str, dict[str, str]] = yaml.safe_load((ROOT / "tests" / "decisions.yaml").read_text())


@pytest.mark.parametrize("document", TESTS)
def test_no_difference_without_a_test(document: str) -> None:
    text = (ROOT / "docs" / "decisions" / document).read_text()
    differences = re.findall(r"^- \*\*(.+?)\*\*", text, re.MULTILINE | re.DOTALL)
    assert {" ".join(each.split()) for each in differences} == set(TESTS[document])


@pytest.mark.parametrize("test", sorted({test for tests in TESTS.values() for test in tests.values()}))
def test_the_tests_exist(test: str) -> None:
    path, *names = test.split("::")
    body: list[ast.stmt] = ast.parse((ROOT / path).read_text()).body
    for name in names:
        found = [each for each in body if getattr(each, "name", None) == name]
        assert found, f"{path} has no {name}"
        body = getattr(found[0], "body", [])
