import orjson

from isvc.api.kinds.crds import crds
from isvc.apiserver import openapi
from isvc.apiserver.builtin.base import Claims
from isvc.apiserver.builtin.catalog import descriptions
from isvc.apiserver.crd import descriptions as custom_descriptions

CRD = {
    "metadata": {"name": "widgets.isvc.dev", "generation": 1},
    "spec": {
        "group": "isvc.dev",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {"type": "object", "description": "What it is like."}},
                    }
                },
            }
        ],
    },
    "status": {"acceptedNames": {"plural": "widgets", "kind": "Widget"}},
}
SERVED = [*descriptions(Claims()), *custom_descriptions(CRD)]


def test_every_reference_leads_somewhere():
    for path in openapi.v3_index(SERVED)["paths"]:
        document = openapi.v3(SERVED, path)
        assert document
        schemas = orjson.loads(document)["components"]["schemas"]
        for line in document.split(b'"$ref":"#/components/schemas/')[1:]:
            assert line.split(b'"')[0].decode() in schemas


def test_documents_of_built_in_and_custom_kinds():
    apps = orjson.loads(openapi.v3(SERVED, "apis/apps/v1") or b"")
    patch = apps["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert "fieldValidation" in {each["name"] for each in patch["parameters"]}
    spec = apps["components"]["schemas"]["io.k8s.api.apps.v1.DeploymentSpec"]
    assert spec["properties"]["strategy"]["allOf"] == [
        {"$ref": "#/components/schemas/io.k8s.api.apps.v1.DeploymentStrategy"}
    ]
    own = orjson.loads(openapi.v3(SERVED, "apis/isvc.dev/v1") or b"")
    widget = own["components"]["schemas"]["dev.isvc.v1.Widget"]
    assert widget["x-kubernetes-group-version-kind"] == [{"group": "isvc.dev", "version": "v1", "kind": "Widget"}]
    assert widget["properties"]["spec"]["description"] == "What it is like."


def test_the_index_changes_when_a_schema_does():
    def digest(crd):
        return openapi.v3_index(custom_descriptions(crd))["paths"]["apis/isvc.dev/v1"]["serverRelativeURL"]

    changed = orjson.loads(orjson.dumps(CRD))
    changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["more"] = {"type": "string"}
    assert digest(CRD) == digest(orjson.loads(orjson.dumps(CRD)))
    assert digest(CRD) != digest(changed)


def test_unknown_groups_have_no_document_and_version_2_has_everything():
    assert openapi.v3(SERVED, "apis/nope/v1") is None
    definitions = orjson.loads(openapi.v2(SERVED))["definitions"]
    assert (
        definitions["io.k8s.api.core.v1.Pod"]["properties"]["spec"]["$ref"]
        == "#/definitions/io.k8s.api.core.v1.PodSpec"
    )


def test_what_a_custom_kind_says_repeatedly_is_written_once_and_means_the_same():
    def resolve(schema):
        if isinstance(schema, list):
            return [resolve(each) for each in schema]
        if not isinstance(schema, dict):
            return schema
        inner, beside = schema, {}
        if "allOf" in schema and "$ref" in schema["allOf"][0]:
            inner, beside = schema["allOf"][0], {key: value for key, value in schema.items() if key != "allOf"}
        if "/shared." in str(inner.get("$ref", "")):
            inner = {**written[inner["$ref"].rpartition("/")[2]], **beside}
        elif beside:
            inner = schema
        return {key: resolve(each) for key, each in inner.items()}

    for crd in crds(described=True):
        versions = crd["spec"]["versions"]
        crd["status"] = {"acceptedNames": crd["spec"]["names"]}
        for version in versions:
            path = f"apis/{crd['spec']['group']}/{version['name']}"
            document = openapi.v3([*custom_descriptions(crd)], path) or b""
            written = orjson.loads(document)["components"]["schemas"]
            name = ".".join([*reversed(crd["spec"]["group"].split(".")), version["name"], crd["spec"]["names"]["kind"]])
            wanted, found = version["schema"]["openAPIV3Schema"]["properties"], resolve(written[name])["properties"]
            assert {key: found[key] for key in ("spec", "status") if key in found} == {
                key: wanted[key] for key in ("spec", "status") if key in wanted
            }
            if crd["spec"]["names"]["kind"] == "InferenceService":
                assert len(document) < len(orjson.dumps(wanted)) / 4
