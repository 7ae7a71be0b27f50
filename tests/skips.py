"""In CI nothing is left out silently: a skipped test is a failed one. What a command does not run, it does not collect.

Recordings that are not there, kubectl or curl that are not installed, a parameter set that is empty: each would let a
whole suite pass without having tested anything.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if os.environ.get("CI") and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome, report.longrepr = "failed", f"skipped in CI: {_reason(report.longrepr)}"
    return report


def _reason(longrepr: Any) -> str:
    return str(longrepr[2]).removeprefix("Skipped: ") if isinstance(longrepr, tuple) else str(longrepr)
