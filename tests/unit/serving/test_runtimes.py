import pytest

from isvc.api.codec import decode
from isvc.api.inferenceservice.models import ModelSpec
from isvc.serving.runtimes import ModelRefused, Runtime, Runtimes


def runtime(name, *formats, cluster=False, created="2026-01-01T00:00:00Z", annotations=None, **spec):
    metadata = {"name": name, "creationTimestamp": created, "annotations": annotations or {}}
    return Runtime.of({"metadata": metadata, "spec": {"supportedModelFormats": list(formats), **spec}}, cluster=cluster)


def offer(name, version=None, priority=None, auto=True):
    fields = {"name": name, "version": version, "autoSelect": auto, "priority": priority}
    return {key: value for key, value in fields.items() if value is not None}


def model(name, version=None, **spec):
    form = {"name": name} if version is None else {"name": name, "version": version}
    return decode(ModelSpec, {"modelFormat": form, **spec})


def chosen(namespaced, cluster, wanted, multi_node=False):
    return Runtimes(namespaced, cluster).choose(wanted, multi_node=multi_node).name


def refusal(namespaced, cluster, wanted, multi_node=False):
    with pytest.raises(ModelRefused) as refused:
        chosen(namespaced, cluster, wanted, multi_node)
    return refused.value.reason


def test_the_namespace_comes_before_the_cluster():
    own, shared = runtime("own", offer("f")), runtime("shared", offer("f", priority=9), cluster=True)
    assert chosen([own], [shared], model("f")) == "own"
    assert chosen([], [shared], model("f")) == "shared"


def test_a_named_runtime_of_the_namespace_hides_the_clusters():
    own, shared = runtime("same", offer("f")), runtime("same", offer("f"), cluster=True)
    assert not Runtimes([own], [shared]).choose(model("f", runtime="same"), multi_node=False).cluster


def test_priority_then_protocol_then_age_then_name():
    low, high = runtime("low", offer("f", priority=1)), runtime("high", offer("f", priority=5))
    none = runtime("none", offer("f"), created="2027-01-01T00:00:00Z")
    assert chosen([low, none, high], [], model("f")) == "high"
    v1, any_protocol = runtime("z", offer("f"), protocolVersions=["v1"]), runtime("a", offer("f"))
    assert chosen([any_protocol, v1], [], model("f")) == "z"
    old, new = runtime("a", offer("f")), runtime("b", offer("f"), created="2027-01-01T00:00:00Z")
    assert chosen([old, new], [], model("f")) == "b"
    assert chosen([runtime("b", offer("f")), runtime("a", offer("f"))], [], model("f")) == "a"


def test_versions_protocols_and_auto_select_narrow_the_choice():
    one, two = runtime("one", offer("f", "1")), runtime("two", offer("f", "2"), protocolVersions=["v2"])
    assert chosen([one, two], [], model("f", "1")) == "one"
    assert chosen([one, two], [], model("f", "2", protocolVersion="v2")) == "two"
    assert refusal([two], [], model("f", "2")) == "NoSupportingRuntime"
    by_hand = runtime("hand", offer("f", auto=False))
    assert refusal([by_hand], [], model("f")) == "NoSupportingRuntime"
    assert chosen([by_hand], [], model("f", runtime="hand")) == "hand"


def test_disabled_multi_model_and_multi_node_runtimes_do_not_offer_themselves():
    off, mesh = runtime("off", offer("f"), disabled=True), runtime("mesh", offer("f"), multiModel=True)
    nodes = runtime("nodes", offer("f"), workerSpec={"containers": []})
    assert refusal([off, mesh, nodes], [], model("f")) == "NoSupportingRuntime"
    assert chosen([off, mesh, nodes], [], model("f"), multi_node=True) == "nodes"


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"runtime": "gone"}, "RuntimeNotRecognized"),
        ({"runtime": "off"}, "RuntimeDisabled"),
        ({"runtime": "on", "protocolVersion": "v2"}, "NoSupportingRuntime"),
        ({"runtime": "on", "version": "9"}, "NoSupportingRuntime"),
    ],
)
def test_why_a_named_runtime_does_not_do(spec, reason):
    off, on = runtime("off", offer("f"), disabled=True), runtime("on", offer("f", "1"), protocolVersions=["v1"])
    version = spec.pop("version", None)
    assert refusal([off, on], [], model("f", version, **spec)) == reason


def test_server_types_are_given_or_known_by_name():
    assert runtime("x", annotations={"serving.kserve.io/server-type": "mlserver"}).server_type == "mlserver"
    assert runtime("kserve-tritonserver").server_type == "tritonserver"
    assert runtime("x").server_type == ""


def test_any_priority_beats_none():
    silent = runtime("silent", offer("f"), created="2026-02-02T00:00:00Z")
    assert chosen([silent, runtime("least", offer("f", priority=0))], [], model("f")) == "least"


def test_a_model_with_an_empty_protocol_takes_any():
    assert chosen([runtime("two", offer("f"), protocolVersions=["v2"])], [], model("f", protocolVersion="")) == "two"


def test_a_protocol_that_alone_is_in_the_way_is_named():
    cluster = [runtime("server", offer("f"), cluster=True, protocolVersions=["v2"])]
    with pytest.raises(ModelRefused) as refused:
        chosen([], cluster, model("f"))
    assert refused.value.remedy == "what serves it does not speak v1: set model.protocolVersion: v2 (server)"
    assert chosen([], cluster, model("f", protocolVersion="v2")) == "server"
