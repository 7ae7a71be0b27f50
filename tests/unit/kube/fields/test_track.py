import pytest

from isvc.kube import fields
from isvc.kube.objects import GVK, deep_copy
from isvc.kube.schemas import schema_of

DEPLOYMENT = schema_of(GVK("apps", "v1", "Deployment"))
EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def deployment(**spec):
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "a", "uid": "1", "labels": {"app": "a"}},
        "spec": spec,
    }


def written(new, live=None, *, manager="kubectl", now=EARLY, **options):
    """The object as it would be stored after the write."""
    stored = deep_copy(new)
    stored["metadata"]["managedFields"] = fields.track(
        new, live, DEPLOYMENT, manager=manager, api_version="apps/v1", now=now, **options
    )
    return stored


def by_manager(obj):
    return {entry["manager"]: entry for entry in obj["metadata"]["managedFields"]}


def test_a_creator_manages_all_it_set_but_not_what_the_server_keeps():
    container = {"name": "c", "image": "i", "ports": [{"containerPort": 80}], "args": ["x"]}
    created = written(deployment(replicas=1, template={"spec": {"containers": [container]}}))
    assert created["metadata"]["managedFields"] == [
        {
            "manager": "kubectl",
            "operation": "Update",
            "apiVersion": "apps/v1",
            "time": EARLY,
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
                "f:spec": {
                    "f:replicas": {},
                    "f:template": {
                        "f:spec": {
                            "f:containers": {
                                'k:{"name":"c"}': {
                                    ".": {},
                                    "f:name": {},
                                    "f:image": {},
                                    "f:args": {},
                                    "f:ports": {
                                        ".": {},
                                        'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}},
                                    },
                                }
                            }
                        }
                    },
                },
            },
        }
    ]


def test_a_custom_resource_has_a_spec_of_its_own():
    thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {}, "spec": {"size": 1, "list": [{"a": 1}]}}
    [entry] = fields.track(thing, None, None, manager="m", api_version="example.com/v1", now=EARLY)
    assert entry["fieldsV1"] == {"f:spec": {".": {}, "f:size": {}, "f:list": {}}}


def test_a_changed_value_changes_hands():
    live = written(deployment(replicas=1, paused=False))
    scaled = written(deployment(replicas=2, paused=False), live, manager="hpa", now=LATE, subresource="scale")
    assert by_manager(scaled)["hpa"]["fieldsV1"] == {"f:spec": {"f:replicas": {}}}
    assert by_manager(scaled)["hpa"]["subresource"] == "scale"
    assert by_manager(scaled)["kubectl"]["fieldsV1"]["f:spec"] == {"f:paused": {}}
    assert by_manager(scaled)["kubectl"]["time"] == EARLY


def test_a_write_that_changes_nothing_changes_no_manager():
    live = written(deployment(replicas=1))
    assert written(deployment(replicas=1), live, manager="other", now=LATE) == live


def test_a_removed_field_has_no_manager():
    live = written(deployment(replicas=1, paused=True))
    assert by_manager(written(deployment(paused=True), live, now=LATE))["kubectl"]["fieldsV1"]["f:spec"] == {
        "f:paused": {}
    }


@pytest.mark.parametrize("reset", [[], [{}]])
def test_a_client_can_give_up_tracking(reset):
    live = written(deployment(replicas=1))
    new = deployment(replicas=2)
    new["metadata"]["managedFields"] = reset
    after = written(new, live)
    assert after["metadata"]["managedFields"] == []
    assert written(deployment(replicas=3), after)["metadata"]["managedFields"] == []


def test_ignored_parts_of_the_object_are_nobodys():
    new = {**deployment(replicas=1), "status": {"replicas": 1}}
    assert "f:status" not in by_manager(written(new, ignore=("status",)))["kubectl"]["fieldsV1"]


def test_no_more_than_ten_updaters():
    live = written(deployment(replicas=0))
    for number in range(1, 15):
        new = deployment(**{**live["spec"], f"field{number}": number})
        live = written(new, live, manager=f"m{number:02}", now=f"2026-01-{number + 1:02}T00:00:00Z")
    managers = [entry["manager"] for entry in live["metadata"]["managedFields"]]
    assert len(managers) == 10
    assert "ancient-changes" in managers
    assert managers[-1] == "m14"
    everything = set()
    for entry in live["metadata"]["managedFields"]:
        everything |= entry["fieldsV1"].get("f:spec", {}).keys()
    assert everything == {"f:replicas", *(f"f:field{number}" for number in range(1, 15))}


def test_unreadable_managed_fields_are_forgotten():
    live = written(deployment(replicas=1))
    new = deployment(replicas=2)
    new["metadata"]["managedFields"] = [{"manager": "x", "operation": "Invent"}]
    assert by_manager(written(new, live)).keys() == {"kubectl"}
