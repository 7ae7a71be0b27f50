import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.growth import assert_grows_as_its_input

from isvc.kube.objects import deep_copy
from isvc.kube.patch import PatchError, strategic
from isvc.kube.schemas import definition

POD_SPEC = definition("io.k8s.api.core.v1.PodSpec")
CONTAINER = definition("io.k8s.api.core.v1.Container")


def names(*letters):
    return [{"name": letter} for letter in letters]


def test_items_of_the_patch_come_first_in_keyed_lists():
    runtime = {"volumes": names("dshm", "cache"), "imagePullSecrets": names("a"), "containers": names("main")}
    user = {"volumes": names("mine"), "imagePullSecrets": names("b"), "containers": names("extra")}
    merged = strategic.apply(runtime, user, POD_SPEC)
    assert merged["volumes"] == names("mine", "dshm", "cache")
    assert merged["imagePullSecrets"] == names("b", "a")
    assert merged["containers"] == names("extra", "main")


def test_items_are_known_by_values_of_any_type():
    schema = {"properties": {"a": {"x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "k"}}}
    live = {"a": [{"k": 1, "v": 1}, {"k": True, "v": 1}, {"k": {"b": 1, "c": 2}, "v": 1}, {"k": [1], "v": 1}]}
    patch = {"a": [{"k": {"c": 2, "b": 1}, "v": 2}, {"k": 1, "v": 2}, {"$patch": "delete", "k": [1]}]}
    merged = strategic.apply(live, patch, schema)["a"]
    assert {str(each["k"]): each["v"] for each in merged} == {"1": 2, "True": 1, "{'b': 1, 'c': 2}": 2}


def test_unkeyed_lists_are_replaced_and_maps_merge():
    merged = strategic.apply(
        {"tolerations": [{"key": "a"}], "nodeSelector": {"x": "1"}, "hostIPC": True},
        {"tolerations": [{"key": "b"}], "nodeSelector": {"y": "2"}},
        POD_SPEC,
    )
    assert merged == {"tolerations": [{"key": "b"}], "nodeSelector": {"x": "1", "y": "2"}, "hostIPC": True}


def test_items_merge_by_key_and_keep_the_place_they_had():
    merged = strategic.apply(
        {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "C", "value": "3"}]},
        {"env": [{"name": "C", "value": "9"}, {"name": "D", "value": "4"}]},
        CONTAINER,
    )
    assert [(item["name"], item["value"]) for item in merged["env"]] == [("A", "1"), ("B", "2"), ("C", "9"), ("D", "4")]
    ports = strategic.apply(
        {"ports": [{"containerPort": 8080, "protocol": "TCP"}]},
        {"ports": [{"containerPort": 8080, "name": "http1"}, {"containerPort": 9000}]},
        CONTAINER,
    )
    assert ports["ports"] == [{"containerPort": 8080, "protocol": "TCP", "name": "http1"}, {"containerPort": 9000}]


@pytest.mark.parametrize(
    ("original", "patch", "result"),
    [
        ({"containers": names("a", "b")}, {"containers": [{"name": "a", "$patch": "delete"}]}, names("b")),
        ({"containers": names("a", "b")}, {"containers": [{"$patch": "replace"}, {"name": "c"}]}, names("c")),
        (
            {"containers": names("a", "b", "c")},
            {"$setElementOrder/containers": names("c", "a"), "containers": [{"name": "a", "image": "i"}]},
            [{"name": "b"}, {"name": "c"}, {"name": "a", "image": "i"}],
        ),
        ({"containers": names("a")}, {"$setElementOrder/containers": names("a")}, names("a")),
        ({}, {"containers": [{"name": "a", "image": None}, {"name": "b", "$patch": "delete"}]}, names("a")),
    ],
)
def test_directives_in_keyed_lists(original, patch, result):
    assert strategic.apply(original, patch, POD_SPEC)["containers"] == result


@pytest.mark.parametrize(
    "probe",
    [
        {"$patch": "replace", "tcpSocket": {"port": 1}},
        {"$retainKeys": ["tcpSocket"], "tcpSocket": {"port": 1}},
        {"exec": None, "tcpSocket": {"port": 1}},
    ],
)
def test_ways_to_replace_one_handler_by_another(probe):
    merged = strategic.apply({"livenessProbe": {"exec": {}}}, {"livenessProbe": probe}, CONTAINER)
    assert merged == {"livenessProbe": {"tcpSocket": {"port": 1}}}


def test_sets_of_words():
    schema = {"properties": {"finalizers": {"type": "array", "x-kubernetes-patch-strategy": "merge"}}}
    original = {"finalizers": ["a", "b"]}
    assert strategic.apply(original, {"finalizers": ["c", "a"]}, schema)["finalizers"] == ["c", "a", "b"]
    gone = {"$deleteFromPrimitiveList/finalizers": ["a"]}
    assert strategic.apply(original, gone, schema)["finalizers"] == ["b"]
    ordered = {"$setElementOrder/finalizers": ["b", "c", "a"], "finalizers": ["c"]}
    assert strategic.apply(original, ordered, schema)["finalizers"] == ["b", "c", "a"]


@pytest.mark.parametrize(
    "patch",
    [
        {"containers": [{"image": "no name"}]},
        {"containers": [{"name": "a", "$patch": "merge"}]},
        {"containers": ["a"]},
        {"$patch": "invent"},
        {"$setElementOrder/containers": names("b"), "containers": names("a")},
        {"$setElementOrder/containers": "a"},
        {"$retainKeys": ["volumes"], "containers": []},
    ],
)
def test_malformed_patches_are_refused(patch):
    with pytest.raises(PatchError):
        strategic.apply({"containers": names("a")}, patch, POD_SPEC)


items = st.lists(st.sampled_from("abcde"), unique=True).map(lambda letters: names(*letters))
specs = st.fixed_dictionaries({"containers": items}, optional={"volumes": items, "nodeSelector": st.just({"a": "b"})})


@given(specs, specs)
def test_merging_loses_nothing_repeats_nothing_and_modifies_nothing(original, patch):
    before = deep_copy({"original": original, "patch": patch})
    merged = strategic.apply(original, patch, POD_SPEC)
    assert before == {"original": original, "patch": patch}
    assert strategic.apply(merged, patch, POD_SPEC) == merged
    for key in ("containers", "volumes"):
        mine, theirs = patch.get(key, []), original.get(key, [])
        result = merged.get(key, [])
        assert [item for item in result if item in mine] == mine
        assert [item for item in result if item not in mine] == [item for item in theirs if item not in mine]


def test_a_long_list_of_what_is_retained_takes_a_time_that_grows_with_its_length():
    def retain(size: int) -> None:
        keys = {f"k{each}": 1 for each in range(size)}
        assert strategic.apply({"gone": 1}, {"$retainKeys": [*keys, {}], **keys}, None) == keys

    assert_grows_as_its_input(retain, 1_000)
