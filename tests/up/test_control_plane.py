"""The checks that people know from KServe's documentation answer on `isvc up`, too."""

from __future__ import annotations

import json

import pytest
from tests.up.machine import Machine, until

PLANES = ("kserve-controller-manager", "llminferenceservice-kserve-controller-manager")


@pytest.mark.parametrize("plane", PLANES)
def test_managers_are_pods_with_logs(here: Machine, plane: str) -> None:
    of_manager = ("-n", "kserve", "-l", f"control-plane={plane}")
    wait = ("wait", "--for=condition=Ready", "pod", *of_manager, "--timeout=30s")  # which ends at once if there is none
    until(lambda: "condition met" in here.kubectl(*wait, check=False), "the manager's pod")
    pods = json.loads(here.kubectl("get", "pods", *of_manager, "-o", "json"))["items"]
    assert [pod["status"]["phase"] for pod in pods] == ["Running"]
    until(lambda: "running: " in here.kubectl("logs", *of_manager, "-c", "manager", "--tail=-1"), "the manager's log")


def test_the_other_programs_are_pods_too(here: Machine) -> None:
    said = here.kubectl("logs", "-n", "kserve", "-l", "app.kubernetes.io/name=isvc-apiserver", "--tail=-1")
    assert "serving at https://127.0.0.1:" in said


def test_managers_hold_their_leases(here: Machine) -> None:
    names = ("kserve-controller-manager-leader-lock", "llminferenceservice-kserve-controller-manager")

    def held() -> bool:
        leases = json.loads(here.kubectl("get", "leases", "-n", "kserve", "-o", "json"))["items"]
        holders = {lease["metadata"]["name"]: lease["spec"].get("holderIdentity") for lease in leases}
        return all((holders.get(name) or "").endswith("_isvc-up") for name in names)

    until(held, "the leases of both managers")
