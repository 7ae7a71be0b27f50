"""Our managers started over what KServe left: no pod restarts, and every other write has a reason in `writes.yaml`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from tests.recorded_cluster.servers import Servers
from tests.recorded_cluster.takeover import TakeOver
from tests.recordings import FOLDER

PROFILES = sorted(path.stem for path in FOLDER.glob("profiles/*.yaml"))
TEMPLATE = re.compile(
    r"(Deployment|Service\.serving\.knative\.dev|LeaderWorkerSet|StatefulSet)\S* spec\.\w*[tT]emplate"
)


def reasons() -> dict[str, str]:
    """Why a write is made, by the pattern of its line."""
    entries = yaml.safe_load(Path(__file__).with_name("writes.yaml").read_text())
    return {entry["write"]: entry["reason"] for entry in entries}


def unreasoned(changes: list[str]) -> tuple[list[str], set[str]]:
    """The writes without a reason, and the patterns that gave one."""
    used: set[str] = set()
    rest = []
    for change in changes:
        fitting = {pattern for pattern in reasons() if re.search(pattern, change)}
        used |= fitting
        if not fitting:
            rest.append(change)
    return rest, used


@pytest.mark.skipif(not FOLDER.is_dir(), reason=f"no recorded cases in {FOLDER}")
def test_taking_over_restarts_no_pod(servers: Servers):
    """One test, so that each reason can be asked for: it has to be somebody's."""
    surprising, needed = {}, set()
    for profile in PROFILES:
        changes = TakeOver(servers, profile).changes()
        assert [change for change in changes if TEMPLATE.search(change)] == [], profile
        rest, used = unreasoned(changes)
        needed |= used
        if rest:
            surprising[profile] = rest
    assert surprising == {}
    assert reasons().keys() - needed == set(), "these writes are no longer made: take them out of writes.yaml"
