"""All kinds with all of their schemas: 140,000 lines of YAML that are read back."""

from __future__ import annotations

from tests.packaging.test_chart_of_kinds import compare_kinds


def test_plain_kinds_with_all_schemas_are_those_of_the_chart():
    compare_kinds()
