import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.growth import assert_grows_as_its_input

from isvc.kube import fields
from isvc.kube.fields.managers import Manager
from isvc.kube.objects import GVK, deep_copy, dig
from isvc.kube.schemas import schema_of

DEPLOYMENT = schema_of(GVK("apps", "v1", "Deployment"))
EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def deployment(labels=None, **spec):
    metadata = {"name": "a", **({"labels": labels} if labels else {})}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def pod(*containers, **spec):
    return {"template": {"spec": {"containers": list(containers), **spec}}}


def apply(live, applied, manager="a", **options):
    return fields.apply(
        live, applied, DEPLOYMENT, **{"manager": manager, "api_version": "apps/v1", "now": EARLY, **options}
    )


def managed(obj, manager):
    return next(e["fieldsV1"] for e in obj["metadata"]["managedFields"] if e["manager"] == manager)


def containers(obj):
    return dig(obj, "spec", "template", "spec", "containers") or []


def test_applying_creates_and_claims_what_was_applied():
    created = apply(None, deployment({"x": "1"}, **pod({"name": "c", "image": "i"})))
    assert created["metadata"]["name"] == "a"
    assert managed(created, "a") == {
        "f:metadata": {"f:labels": {"f:x": {}}},
        "f:spec": {
            "f:template": {"f:spec": {"f:containers": {'k:{"name":"c"}': {".": {}, "f:name": {}, "f:image": {}}}}}
        },
    }
    assert created["metadata"]["managedFields"][0]["operation"] == "Apply"


def test_what_is_no_longer_applied_goes():
    live = apply(None, deployment({"x": "1", "y": "2"}, replicas=1, **pod({"name": "c"}, {"name": "d"})))
    live = apply(live, deployment({"x": "1"}, **pod({"name": "c"})))
    assert live["metadata"]["labels"] == {"x": "1"}
    assert containers(live) == [{"name": "c"}]
    assert "replicas" not in live["spec"]
    assert "labels" not in apply(live, deployment(**pod({"name": "c"})))["metadata"]


def test_what_others_manage_stays():
    live = apply(None, deployment({"x": "1"}, replicas=1))
    live = apply(live, deployment({"x": "1", "y": "2"}), manager="b")
    live = apply(live, deployment())
    assert live["metadata"]["labels"] == {"x": "1", "y": "2"}
    assert managed(live, "a") == {"f:spec": {}}


def test_what_nobody_manages_stays():
    live = apply(None, deployment(replicas=1))
    live["spec"]["paused"] = True
    assert apply(live, deployment(replicas=2))["spec"] == {"replicas": 2, "paused": True}


def test_conflict():
    live = apply(None, deployment(replicas=1))
    with pytest.raises(fields.ApplyConflict) as caught:
        apply(live, deployment(replicas=2), manager="b")
    assert str(caught.value) == 'Apply failed with 1 conflict: conflict with "a": .spec.replicas'
    assert caught.value.causes == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "a"', "field": ".spec.replicas"}
    ]
    forced = apply(live, deployment(replicas=2), manager="b", force=True)
    assert forced["spec"]["replicas"] == 2
    assert [entry["manager"] for entry in forced["metadata"]["managedFields"]] == ["b"]


def test_the_same_value_is_no_conflict_but_shared():
    live = apply(None, deployment(replicas=1))
    live = apply(live, deployment(replicas=1), manager="b")
    assert managed(live, "a") == managed(live, "b") == {"f:spec": {"f:replicas": {}}}
    live = apply(live, deployment())
    assert live["spec"]["replicas"] == 1


def test_several_conflicts_and_updaters_in_the_message():
    created = deployment(replicas=1, paused=True)
    created["metadata"]["managedFields"] = fields.track(
        created, None, DEPLOYMENT, manager="kubectl-edit", api_version="apps/v1", now=EARLY
    )
    with pytest.raises(fields.ApplyConflict) as caught:
        apply(created, deployment(replicas=2, paused=False))
    assert str(caught.value) == (
        'Apply failed with 2 conflicts: conflicts with "kubectl-edit" using apps/v1:\n- .spec.paused\n- .spec.replicas'
    )


def test_applying_the_same_again_changes_nothing():
    applied = deployment({"x": "1"}, replicas=1, **pod({"name": "c", "image": "i"}))
    live = apply(None, applied)
    assert apply(live, applied, now=LATE) == live


def test_an_object_from_before_the_first_apply():
    live = {**deployment(replicas=1, paused=False)}
    with pytest.raises(fields.ApplyConflict, match="before-first-apply"):
        apply(live, deployment(replicas=2))
    merged = apply(live, deployment(replicas=1))
    assert managed(merged, "before-first-apply")["f:spec"] == {"f:replicas": {}, "f:paused": {}}


def test_kubectl_moves_over_from_client_side_apply():
    last = '{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"replicas":1}}'
    live = deployment(replicas=1)
    live["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": last}
    live["metadata"]["managedFields"] = fields.track(
        live, None, DEPLOYMENT, manager="kubectl-client-side-apply", api_version="apps/v1", now=EARLY
    )
    moved = apply(live, deployment(replicas=2), manager="kubectl")
    assert moved["spec"]["replicas"] == 2
    assert '"replicas":2' in moved["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"]
    with pytest.raises(fields.ApplyConflict):
        apply(live, deployment(replicas=2), manager="flux")


def test_atomic_lists_and_maps_are_taken_as_a_whole():
    live = apply(None, deployment(selector={"matchLabels": {"a": "1"}}, **pod({"name": "c", "args": ["1"]})))
    with pytest.raises(fields.ApplyConflict) as caught:
        apply(live, deployment(selector={"matchLabels": {"b": "1"}}, **pod({"name": "c", "args": ["2"]})), manager="b")
    assert [conflict.field for conflict in caught.value.conflicts] == [
        ".spec.selector",
        '.spec.template.spec.containers[name="c"].args',
    ]


def test_items_of_keyed_lists_merge_and_keep_their_order():
    live = apply(None, deployment(**pod({"name": "a"}, {"name": "b"}, {"name": "c"})))
    live = apply(live, deployment(**pod({"name": "d"}, {"name": "c", "image": "i"})), manager="b")
    assert [item["name"] for item in containers(live)] == ["a", "b", "d", "c"]
    with pytest.raises(ValueError, match="duplicate"):
        apply(live, deployment(**pod({"name": "a"}, {"name": "a"})))
    orphan = deployment()
    orphan["metadata"]["ownerReferences"] = [{"name": "no uid"}]
    with pytest.raises(ValueError, match="key"):
        apply(live, orphan)


def test_preconditions_are_carried_over():
    live = apply(None, deployment(replicas=1))
    live["metadata"] |= {"resourceVersion": "7", "uid": "u"}
    applied = deployment(replicas=1)
    assert apply(live, applied)["metadata"]["resourceVersion"] == "7"
    applied["metadata"]["resourceVersion"] = "5"
    assert apply(live, applied)["metadata"]["resourceVersion"] == "5"


items = st.lists(st.sampled_from("abc"), unique=True, max_size=3)
specs = st.builds(
    lambda labels, names, image, replicas: deployment(
        dict.fromkeys(labels, "1"), replicas=replicas, **pod(*({"name": name, "image": image} for name in names))
    ),
    items,
    items.filter(bool),
    st.sampled_from("ij"),
    st.integers(0, 2),
)


@given(specs, specs, specs)
def test_after_an_apply_the_object_says_what_was_applied(first, second, third):
    live = apply(None, first)
    live = apply(live, second, manager="b", force=True)
    before = deep_copy(live)
    after = apply(live, third, force=True, now=LATE)
    assert live == before
    assert after["spec"]["replicas"] == third["spec"]["replicas"]
    merged = {item["name"]: item for item in containers(after)}
    for item in containers(third):
        assert merged[item["name"]] == item
    expected = {item["name"] for item in (*containers(second), *containers(third))}
    assert merged.keys() == expected
    assert after["metadata"].get("labels", {}).keys() == {
        *second["metadata"].get("labels", {}),
        *third["metadata"].get("labels", {}),
    }
    assert apply(after, third, now=LATE) == after


def test_an_apply_of_many_items_takes_a_time_that_grows_with_their_number():
    def variables(size: int, value: str) -> dict:
        return deployment(**pod({"name": "c", "env": [{"name": f"N{each}", "value": value} for each in range(size)]}))

    live = {size: apply(None, variables(size, "1")) for size in (1_000, 8_000)}
    assert_grows_as_its_input(lambda size: apply(live[size], variables(size, "2")), 1_000)


def test_conflicts_with_many_managers_are_told_in_a_time_that_grows_with_their_number():
    [replicas] = fields.FieldSet.parse({"f:spec": {"f:replicas": {}}}).paths()
    conflicts = [fields.FieldConflict(Manager(f"m{each}", "Apply"), replicas) for each in range(8_000)]
    assert_grows_as_its_input(lambda size: fields.ApplyConflict(conflicts[:size]), 1_000)
