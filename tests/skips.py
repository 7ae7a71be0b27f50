"""In CI nothing is left out silently: a skipped test is a failed one, unless another command of CI runs it.

Recordings that are not there, kubectl or curl that are not installed, a parameter set that is empty: each would let a
whole suite pass without having tested anything.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any, Final

import pytest

# What is run with another API server, or in an environment of its own.
ELSEWHERE: Final = (
    "brings its own API server",
    "compares with a real kube-apiserver: run make test-kube",
    "needs a real kube-apiserver: run make test-kube",
    "needs the kserve package: make test-sdk",
)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if os.environ.get("CI") and report.skipped and not hasattr(report, "wasxfail"):
        reason = _reason(report.longrepr)
        if reason not in ELSEWHERE:
            report.outcome, report.longrepr = "failed", f"skipped in CI: {reason}"
    return report


def _reason(longrepr: Any) -> str:
    return str(longrepr[2]).removeprefix("Skipped: ") if isinstance(longrepr, tuple) else str(longrepr)
