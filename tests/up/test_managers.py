"""`isvc up` runs both managers in one process: LLM services are admitted, converted and reconciled, too."""

from __future__ import annotations

import pytest
from tests.up.machine import Machine, until

SERVICE = {
    "apiVersion": "serving.kserve.io/v1alpha1",
    "kind": "LLMInferenceService",
    "metadata": {"name": "chat"},
    "spec": {"model": {"uri": "hf://a/b", "name": "m", "criticality": "Critical"}},
}


@pytest.fixture
def here(tmp_path):
    running = Machine(tmp_path / "home")
    running.claim.mkdir(parents=True)
    try:
        yield running
    finally:
        running.stop()


def conditions(here: Machine) -> list[dict]:
    return here.get("llminferenceservices.v1alpha2.serving.kserve.io", "chat").get("status", {}).get("conditions", [])


def test_llm_services_live_on_isvc_up_and_through_a_restart(here):
    here.start()
    here.apply(SERVICE)
    stored = here.get("llminferenceservices.v1alpha2.serving.kserve.io", "chat")
    assert stored["spec"]["model"] == {"uri": "hf://a/b", "name": "m"}, "it was not converted"
    until(lambda: conditions(here), "the controller's word on it")
    refused = here.kubectl(
        "patch", "llminferenceservice", "chat", "--type=merge", "-p", '{"spec":{"worker":{}}}', check=False
    )
    assert "worker" in refused
    ports = here.home / "run" / "webhook-ports.json"
    before = ports.read_text()
    here.stop()
    here.start()
    assert ports.read_text() == before, "the CRDs had to be written again"
    v1alpha1 = here.get("llminferenceservices.v1alpha1.serving.kserve.io", "chat")
    assert v1alpha1["spec"]["model"]["criticality"] == "Critical"
