"""A change of something shared brings exactly the services back that it is about."""

import pytest

from isvc.controllers.inferenceservice.affected import Affected
from isvc.kube.objects import namespace_of
from isvc.serving.config import Config


def service(name, namespace="ns", annotations=None, status=None, **spec):
    metadata = {"name": name, "namespace": namespace, "annotations": annotations or {}}
    return {"metadata": metadata, "spec": {"predictor": {}, **spec}, "status": status or {}}


def refused(reason):
    return {"modelStatus": {"transitionStatus": "InvalidSpec", "lastFailureInfo": {"reason": reason}}}


SERVICES = [
    service("plain", status={"clusterServingRuntimeName": "sk", "conditions": [{"type": "Stopped"}]}),
    service("own", status={"servingRuntimeName": "sk", "conditions": [{"type": "Stopped"}]}),
    service("waits", status=refused("RuntimeNotRecognized")),
    service("elsewhere", "other", status=refused("NoSupportingRuntime")),
    service("scaled", annotations={"serving.kserve.io/autoscalerClass": "keda"}),
    service("explained", explainer={"art": {}}),
    service("spread", predictor={"workerSpec": {}}),
    service("several", transformer={"storageUris": [{"uri": "gs://a"}]}),
]
EVERYONE = {each["metadata"]["name"] for each in SERVICES}


class Reader:
    def list(self, resource, namespace=""):
        return [each for each in SERVICES if namespace in ("", namespace_of(each))]


@pytest.fixture
def affected():
    config = Config.parse({"storageInitializer": '{"caBundleConfigMapName": "bundle"}'})
    return Affected(Reader(), lambda: config)


def names(keys):
    return {key.name for key in keys}


def config(name="inferenceservice-config", **data):
    return {"metadata": {"name": name, "namespace": "kserve"}, "data": data}


def test_a_runtime_concerns_its_users_and_those_that_wait(affected):
    assert names(affected.by_runtime({"metadata": {"name": "sk"}})) == {"plain", "waits", "elsewhere"}
    assert names(affected.by_runtime({"metadata": {"name": "sk", "namespace": "ns"}})) == {"own", "waits"}
    assert names(affected.by_lost_runtime({"metadata": {"name": "sk", "namespace": "ns"}})) == {"waits"}


def test_a_storage_container_concerns_what_is_not_deployed(affected):
    assert names(affected.by_storage({})) == EVERYONE - {"plain", "own"}


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ("ingress", EVERYONE),
        ("autoscaler", {"scaled"}),
        ("opentelemetryCollector", {"scaled"}),
        ("explainers", {"explained"}),
        ("multiNode", {"spread"}),
        ("credentials", {"several"}),
    ],
)
def test_a_section_concerns_what_it_is_about(affected, section, expected):
    before, after = config(**{section: "a", "logger": "a"}), config(**{section: "b", "logger": "b"})
    assert affected.settings_changed(before, after)
    assert names(affected.by_settings(after)) == expected


def test_what_concerns_pods_alone_brings_nothing_back(affected):
    assert not affected.settings_changed(config(logger="a"), config(logger="b"))
    assert not affected.settings_changed(config(ingress="a"), config(ingress="a"))


def test_a_bundle_of_certificates_concerns_everyone(affected):
    before, after = config("bundle", **{"cabundle.crt": "a"}), config("bundle", **{"cabundle.crt": "b"})
    assert affected.settings_changed(before, after)
    assert names(affected.by_settings(after)) == EVERYONE
    assert not affected.settings_changed(config("other", a="1"), config("other", a="2"))
