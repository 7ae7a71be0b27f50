import pytest
from hypothesis import given
from hypothesis import strategies as st

from isvc.kube.objects import Object, deep_copy
from isvc.kube.patch import PatchError, json_patch, merge_patch
from isvc.kube.patch.merge_patch import same

scalars = st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab/~", max_size=3)
keys = st.text("ab/~-", max_size=2)
documents = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=12
)
without_null = st.recursive(
    st.booleans() | st.integers(-9, 9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=12,
)


@given(documents, documents)
def test_json_patch_leads_from_one_document_to_the_other(before, after):
    untouched = deep_copy({"": before})
    assert same(json_patch.apply(before, json_patch.diff(before, after)), after)
    assert same({"": before}, untouched)


@given(st.dictionaries(keys, without_null), st.dictionaries(keys, without_null))
def test_merge_patch_leads_from_one_document_to_the_other(before, after):
    untouched = deep_copy(before)
    assert same(merge_patch.apply(before, merge_patch.diff(before, after)), after)
    assert same(before, untouched)


@given(documents)
def test_no_change_is_an_empty_patch(document):
    assert json_patch.diff(document, document) == []
    assert merge_patch.diff({"a": document}, {"a": document}) == {}


@pytest.mark.parametrize(
    ("document", "operation", "result"),
    [
        ({"a": 1}, {"op": "add", "path": "/b", "value": 2}, {"a": 1, "b": 2}),
        ({"a": [1, 3]}, {"op": "add", "path": "/a/1", "value": 2}, {"a": [1, 2, 3]}),
        ({"a": [1]}, {"op": "add", "path": "/a/-", "value": 2}, {"a": [1, 2]}),
        ({"a": [1, 2]}, {"op": "remove", "path": "/a/0"}, {"a": [2]}),
        ({"a": {"b": 1}}, {"op": "replace", "path": "/a/b", "value": 2}, {"a": {"b": 2}}),
        ({"a": {"b": 1}}, {"op": "move", "from": "/a/b", "path": "/c"}, {"a": {}, "c": 1}),
        ({"a": {"b": 1}}, {"op": "copy", "from": "/a", "path": "/c"}, {"a": {"b": 1}, "c": {"b": 1}}),
        ({"a/b": 1, "m~n": 2}, {"op": "test", "path": "/a~1b", "value": 1}, {"a/b": 1, "m~n": 2}),
        ({}, {"op": "test", "path": "/a", "value": None}, {}),
        ({"a": 1}, {"op": "replace", "path": "", "value": {}}, {}),
    ],
)
def test_json_patch_operations(document, operation, result):
    assert json_patch.apply(document, [operation]) == result


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "add", "path": "/x/y", "value": 1},
        {"op": "add", "path": "/a/5", "value": 1},
        {"op": "add", "path": "/b"},
        {"op": "remove", "path": "/x"},
        {"op": "replace", "path": "/x/y", "value": 1},
        {"op": "replace", "path": "/a/3", "value": 1},
        {"op": "test", "path": "/a/0", "value": True},
        {"op": "move", "path": "/x"},
        {"op": "invent", "path": "/a"},
        {"op": "add", "path": "a", "value": 1},
        {"path": 1},
    ],
)
def test_json_patch_refuses_what_does_not_fit(operation):
    with pytest.raises(PatchError):
        json_patch.apply({"a": [1]}, [operation])


def test_copies_of_copies_have_a_limit():
    doubling = [{"op": "copy", "from": "/a", "path": f"/a/{number}"} for number in range(100)]
    deepening = [{"op": "copy", "from": "/a", "path": "/a/b"}] * 1000
    with pytest.raises(PatchError, match="may copy"):
        json_patch.apply({"a": {"text": "x" * 100}}, doubling)
    with pytest.raises(PatchError, match="nested too deeply"):
        json_patch.apply({"a": {}}, deepening)


def test_json_patch_leaves_its_operations_as_they_are():
    operations: list[Object] = [{"op": "add", "path": "/a", "value": {}}, {"op": "add", "path": "/a/b", "value": 1}]
    assert json_patch.apply({}, operations) == {"a": {"b": 1}}
    assert operations[0]["value"] == {}


def test_merge_patch_examples():
    assert merge_patch.apply({"a": {"b": 1, "c": 2}}, {"a": {"b": None}}) == {"a": {"c": 2}}
    assert merge_patch.apply({"a": [1, 2]}, {"a": [3]}) == {"a": [3]}
    assert merge_patch.apply({"a": "x"}, {"a": {"b": {"c": None}}}) == {"a": {"b": {}}}
    assert merge_patch.apply({}, [1]) == [1]
    assert merge_patch.diff({"a": 1, "b": {"c": 1}}, {"a": True, "b": {"c": 1}}) == {"a": True}
