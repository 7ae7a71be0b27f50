"""What follows from the table of webhooks."""

from isvc.api.resources import CLUSTER_STORAGE_CONTAINERS, INFERENCE_SERVICES, LLM_INFERENCE_SERVICES
from isvc.cli import chart
from isvc.kube.resource import CONFIG_MAPS
from isvc.programs.registration import AdmissionWebhook, conversions, reads, targets
from isvc.programs.webhooks import ISVC_WEBHOOKS, LLM_WEBHOOKS, LOCALMODEL_WEBHOOKS


def test_paths_are_not_taken_twice():
    paths = [webhook.path for webhook in (*ISVC_WEBHOOKS, *LLM_WEBHOOKS, *LOCALMODEL_WEBHOOKS)]
    assert len(paths) == len(set(paths))


def test_every_registered_object_gets_our_authority():
    ours = targets(ISVC_WEBHOOKS, "hooks")
    assert ours.mutating == ("inferenceservice.serving.kserve.io",)
    assert "localmodelnamespacecache.serving.kserve.io" in targets(LOCALMODEL_WEBHOOKS, "hooks").validating
    named = {each.configuration for each in ISVC_WEBHOOKS if isinstance(each, AdmissionWebhook)}
    assert named == {*ours.mutating, *ours.validating}
    assert (ours.crds, ours.service) == ((), "hooks")
    llm = targets(LLM_WEBHOOKS, "hooks")
    assert llm.crds == ("llminferenceservices.serving.kserve.io", "llminferenceserviceconfigs.serving.kserve.io")


def test_conversion_is_part_of_the_table():
    asked = conversions(LLM_WEBHOOKS, lambda path: {"url": f"https://here{path}"})
    assert asked[str(LLM_INFERENCE_SERVICES)]["webhook"]["clientConfig"] == {"url": "https://here/convert"}
    assert conversions(ISVC_WEBHOOKS, lambda path: {}) == {}


def test_settings_are_read_in_the_system_namespace():
    settings = [read for read in reads(ISVC_WEBHOOKS, "models") if read.resource == CONFIG_MAPS]
    assert [read.namespace for read in settings] == ["models"]


def test_the_pod_webhook_itself_declares_the_storage_containers_it_reads():
    [pods] = [each for each in ISVC_WEBHOOKS if each.path == "/mutate-pods"]
    assert isinstance(pods, AdmissionWebhook)
    declared = {read.resource for read in pods.reads}
    assert declared == {INFERENCE_SERVICES, CLUSTER_STORAGE_CONTAINERS}


def test_the_role_lets_the_manager_set_every_bundle():
    rules = [rule for each in chart.render("kserve", {"llmisvc": {"enabled": False}}) for rule in each.get("rules", ())]
    named = {rule["resources"][0]: rule.get("resourceNames") for rule in rules}
    ours = targets(ISVC_WEBHOOKS, "hooks")
    assert named["mutatingwebhookconfigurations"] == [*ours.mutating]
    assert named["validatingwebhookconfigurations"] == [*ours.validating]
