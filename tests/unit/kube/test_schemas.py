from isvc.kube import schemas
from isvc.kube.objects import GVK

DEPLOYMENT = GVK("apps", "v1", "Deployment")


def test_references_are_shared_dicts():
    deployment = schemas.schema_of(DEPLOYMENT)
    stateful_set = schemas.schema_of(GVK("apps", "v1", "StatefulSet"))
    assert deployment
    assert stateful_set
    pod = schemas.definition("io.k8s.api.core.v1.PodSpec")
    assert deployment["properties"]["spec"]["properties"]["template"]["properties"]["spec"] is pod
    assert stateful_set["properties"]["spec"]["properties"]["template"]["properties"]["spec"] is pod


def test_keywords_beside_a_reference_are_kept():
    deployment = schemas.schema_of(DEPLOYMENT)
    assert deployment
    strategy = deployment["properties"]["spec"]["properties"]["strategy"]
    assert strategy["x-kubernetes-patch-strategy"] == "retainKeys"
    assert strategy["properties"]["rollingUpdate"]["properties"]["maxSurge"]["x-kubernetes-int-or-string"] is True


def test_list_keys_and_merge_keys_are_there():
    pod = schemas.definition("io.k8s.api.core.v1.PodSpec")
    assert pod
    containers = pod["properties"]["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["x-kubernetes-list-map-keys"] == ["name"]
    assert containers["items"]["properties"]["ports"]["x-kubernetes-list-map-keys"] == ["containerPort", "protocol"]


def test_cycles_end_where_they_began():
    props = schemas.definition("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps")
    assert props
    assert props["properties"]["not"] is props


def test_unknown_kinds_have_none():
    assert schemas.schema_of(GVK("serving.kserve.io", "v1beta1", "InferenceService")) is None
    assert schemas.definition("nonsense") is None


def test_every_kind_resolves():
    for gvk in schemas.kinds():
        assert schemas.schema_of(gvk), gvk
