"""The chart's roles are enough for the recorded cases, and no more than they need."""

from __future__ import annotations

import pytest
from tests.recorded_cluster import rights
from tests.recorded_cluster.servers import FLAGS, Servers
from tests.recordings import FOLDER
from tests.waiting import wait_until

#: Cases that together make every call, found by trying all.
CASES: dict[str, dict[str, list[str]]] = {
    "manager": {
        "knative-istio": ["kn-self-heal", "kn-stop-resume", "tm-lifecycle", "graph-stop-resume"],
        "standard-gateway": ["gw-canary-lifecycle", "gw-cluster-local", "gw-route-self-heal"],
        "standard-ingress": ["std-self-heal", "std-keda-external", "std-keda-resource"],
        "admission-ca": ["adm-ca-bundle"],
        "standard-options": ["opt-scaler-and-resources"],
    },
    "llmisvc": {
        "llmisvc": [
            "llm-drift-corrected",
            "llm-lws-data-parallel",
            "llm-lws-to-single-node",
            "llm-managed-device-simple",
            "llm-scaling-hpa",
        ],
        "llmisvc-routing": ["llm-router-scheduler", "llm-router-group", "llm-scheduler-custom"],
        "llmisvc-tls": ["llm-wva-keda"],
    },
}
LEADING = FLAGS.replace("--leader-elect=false", "--leader-elect=true")


def play(servers: Servers, controller: str, profile: str, cases: list[str]) -> None:
    run = servers.prepare(profile)
    run.cases = [case for case in run.cases if not cases or case.name in cases]
    run._install_base()
    flags = LEADING + (" --metrics-secure=false" if controller == "llmisvc" else "")
    setattr(run.args, controller, rights.command(servers, controller, flags))
    before = leaders(servers)
    try:
        run._start_controllers()
        wait_until(lambda: leaders(servers) - before, "the manager leads; one that does not has nothing to do")
        run._register_webhooks()
        run._play()
    finally:
        run._stop_controllers()
        servers.clear(run)


def leaders(servers: Servers) -> set[str]:
    leases = servers.kube.list("coordination.k8s.io/v1", "Lease", "kserve")
    return {lease["spec"].get("holderIdentity") or "" for lease in leases} - {""}


@pytest.mark.skipif(not FOLDER.is_dir(), reason=f"no recorded cases in {FOLDER}")
@pytest.mark.parametrize("controller", CASES)
def test_every_right_is_used_and_none_is_missing(servers: Servers, controller: str):
    for profile, cases in CASES[controller].items():
        play(servers, controller, profile, cases)
    rights.compare(servers.audit(), controller)
