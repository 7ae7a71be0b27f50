"""One `isvc up` for each worker, which all suites share that need no other: each works in a namespace of its own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.up.machine import Machine, machine, namespace_of, running


@pytest.fixture(scope="session", autouse=True)
def _tools() -> None:
    if not (shutil.which("kubectl") and shutil.which("curl")):
        pytest.skip("needs kubectl and curl")


@pytest.fixture(scope="session")
def laptop(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    folder = tmp_path_factory.mktemp("up")
    with running(machine(folder, models), "--tls", "--allow-edit", "--access-log", str(folder / "access.log")) as here:
        yield here


@pytest.fixture(scope="module")
def here(laptop: Machine, models: Path, request: pytest.FixtureRequest) -> Iterator[Machine]:
    """The machine as a suite uses it that changes nothing outside of its namespace."""
    name = request.module.__name__.rpartition(".test_")[2].replace("_", "-")
    with namespace_of(laptop, name, models) as here:
        yield here
