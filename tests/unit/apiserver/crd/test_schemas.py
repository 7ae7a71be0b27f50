"""Pruning, defaulting and validation by a structural schema."""

from typing import Any

import pytest
from tests.growth import assert_grows_as_its_input

from isvc.apiserver.crd.defaults import apply_defaults
from isvc.apiserver.crd.invariants import check_invariants
from isvc.apiserver.crd.prune import prune
from isvc.apiserver.crd.structure import check_structure
from isvc.apiserver.crd.validate import validate


def obj(**properties):
    return {"type": "object", "properties": properties}


TEXT = {"type": "string"}


def pruned(value, schema):
    unknown: list[str] = []
    prune(value, schema, unknown)
    return value, unknown


def test_unknown_fields_are_pruned_at_every_depth():
    items = {"type": "array", "items": obj(b=TEXT)}
    entries = {"type": "object", "additionalProperties": obj(c=TEXT)}
    schema = obj(spec=obj(a=TEXT, items=items, map=entries))
    value = {"spec": {"a": "1", "x": 1, "items": [{"b": "2", "y": 2}], "map": {"k": {"c": "3", "z": 3}}}, "kind": "K"}
    assert pruned(value, schema) == (
        {"spec": {"a": "1", "items": [{"b": "2"}], "map": {"k": {"c": "3"}}}, "kind": "K"},
        ["spec.x", "spec.items[0].y", "spec.map.k.z"],
    )


def test_preserved_fields_stay_but_known_ones_below_are_pruned():
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"known": obj(a=TEXT)}}
    value = {"spec": {"any": {"x": [1]}, "known": {"a": "1", "b": 2}}}
    assert pruned(value, obj(spec=free)) == ({"spec": {"any": {"x": [1]}, "known": {"a": "1"}}}, ["spec.known.b"])


def test_objects_in_objects_keep_their_metadata_and_lose_what_it_does_not_have():
    embedded = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    value = {"child": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "nonsense": 1}, "spec": {"x": 1}}}
    after, unknown = pruned(value, obj(child=embedded))
    assert after["child"] == {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"x": 1}}
    assert unknown == ["child.metadata.nonsense"]
    assert [str(e) for e in check_invariants({"child": {"metadata": {}}}, obj(child=embedded))] == [
        "child.apiVersion: Required value",
        "child.kind: Required value",
    ]


def test_defaults_fill_what_is_missing_or_null():
    port = {"type": "object", "properties": {"port": {"type": "integer", "default": 80}}}
    schema = obj(
        spec={
            "type": "object",
            "default": {},
            "properties": {
                "mode": {"type": "string", "default": "A"},
                "note": {"type": "string", "nullable": True, "default": "n"},
                "gone": TEXT,
                "ports": {"type": "array", "items": port},
            },
        }
    )
    value: dict[str, Any] = {}
    apply_defaults(value, schema)
    assert value == {"spec": {"mode": "A", "note": "n"}}
    value = {"spec": {"mode": None, "note": None, "gone": None, "ports": [{}, {"port": 1}]}}
    apply_defaults(value, schema)
    assert value == {"spec": {"mode": "A", "note": None, "ports": [{"port": 80}, {"port": 1}]}}


@pytest.mark.parametrize(
    ("value", "schema", "words"),
    [
        ("x", {"type": "integer"}, 'a: Invalid value: "string": a in body must be of type integer: "string"'),
        (None, TEXT, 'a: Invalid value: "null": a in body must be of type string: "null"'),
        (1.5, {"type": "integer"}, 'a: Invalid value: "number": a in body must be of type integer: "number"'),
        (9, {"type": "integer", "maximum": 5}, "a: Invalid value: 9: a in body should be less than or equal to 5"),
        (
            0,
            {"type": "number", "minimum": 0, "exclusiveMinimum": True},
            "a: Invalid value: 0: a in body should be greater than 0",
        ),
        (7, {"type": "integer", "multipleOf": 2}, "a: Invalid value: 7: a in body should be a multiple of 2"),
        ("abc", {"type": "string", "maxLength": 2}, "a: Too long: may not be more than 2 bytes"),
        ("", {"type": "string", "minLength": 1}, 'a: Invalid value: "": a in body should be at least 1 chars long'),
        ("b", {"type": "string", "pattern": "^a$"}, "a: Invalid value: \"b\": a in body should match '^a$'"),
        ("c", {"type": "string", "enum": ["a", "b"]}, 'a: Unsupported value: "c": supported values: "a", "b"'),
        (
            [1],
            {"type": "array", "items": TEXT},
            'a[0]: Invalid value: "integer": a[0] in body must be of type string: "integer"',
        ),
        ([], {"type": "array", "minItems": 1}, "a: Invalid value: 0: a in body should have at least 1 items"),
        ([1, 2], {"type": "array", "maxItems": 1}, "a: Too many: 2: must have at most 1 item"),
        ({}, {"type": "object", "required": ["b"]}, "a.b: Required value"),
        (
            "x",
            {"type": "string", "format": "date-time"},
            'a: Invalid value: "x": a in body must be of type date-time: "x"',
        ),
        (
            True,
            {"x-kubernetes-int-or-string": True},
            'a: Invalid value: "boolean": a in body must be of type integer,string: "boolean"',
        ),
    ],
)
def test_complaints_in_kubernetes_words(value, schema, words):
    assert [str(error) for error in validate({"a": value}, obj(a=schema))] == [words]


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        (1.0, {"type": "integer"}),
        (1, {"type": "number"}),
        (None, {"type": "string", "nullable": True}),
        ("5m", {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
        ("2024-01-01T00:00:00Z", {"type": "string", "format": "date-time"}),
        ("anything", {"type": "string", "format": "made-up"}),
        ("line\nend", {"type": "string", "pattern": "end$"}),
    ],
)
def test_what_is_fine(value, schema):
    assert validate({"a": value}, obj(a=schema)) == []


def test_alternatives_tell_the_nearest_miss():
    either = {"oneOf": [{"required": ["b"]}, {"required": ["c"]}], "type": "object"}
    assert str(validate({"a": {}}, obj(a=either))[0]) == (
        '<nil>: Invalid value: "": "a" must validate one and only one schema (oneOf). Found none valid'
    )
    both = [str(e) for e in validate({"a": {"b": 1, "c": 1}}, obj(a=either))]
    assert both == [
        '<nil>: Invalid value: "": "a" must validate one and only one schema (oneOf). Found 2 valid alternatives'
    ]


def test_old_mistakes_are_tolerated_until_they_are_touched():
    schema = obj(a=obj(x={"type": "integer", "maximum": 5}, y=TEXT))
    old = {"a": {"x": 9, "y": "1"}}
    assert validate({"a": {"x": 9, "y": "2"}}, schema, old) == []
    assert len(validate({"a": {"x": 8, "y": "2"}}, schema, old)) == 1


def test_sets_and_keyed_lists_hold_nothing_twice():
    schema = obj(
        s={"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
        m={
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "items": obj(k=TEXT),
        },
    )
    value = {"s": ["a", "b", "a", "a"], "m": [{"k": "1"}, {"k": "1", "v": 2}]}
    assert [str(e) for e in check_invariants(value, schema)] == [
        's[2]: Duplicate value: "a"',
        'm[1]: Duplicate value: {"k":"1"}',
    ]


def test_a_schema_has_to_be_structural():
    schema = obj(
        spec={"properties": {"a": {"type": "array"}}, "x-kubernetes-validations": [{"rule": "self.nope("}]},
        metadata={"type": "object", "properties": {"labels": {"type": "object"}}},
    )
    found = [str(error) for error in check_structure(schema, "s")]
    assert "s.properties[spec].type: Required value: must not be empty for specified object fields" in found
    assert "s.properties[spec].properties[a].items: Required value: must be specified" in found
    assert any("x-kubernetes-validations[0].rule: Invalid value" in each for each in found)
    assert any(each.startswith("s.properties[metadata]: Forbidden: must not specify anything other") for each in found)


def items_of(size: int, value: object) -> dict[str, Any]:
    return {"items": [{"name": f"n{each}", "value": value} for each in range(size)]}


KEYED = obj(
    items={
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {**obj(name=TEXT, value=TEXT), "x-kubernetes-validations": [{"rule": "self.name != ''"}]},
    }
)


def test_an_update_of_many_items_takes_a_time_that_grows_with_their_number():
    assert_grows_as_its_input(lambda size: validate(items_of(size, "2"), KEYED, items_of(size, "1")), 200)


def test_an_item_is_compared_with_the_first_of_the_same_keys_and_none_without():
    old = {"items": [{"name": "a", "value": 1}, {"name": "a", "value": 2}, {"value": 3}, {"name": [], "value": 4}]}
    assert validate({"items": [{"name": "a", "value": 1}, {"value": 3}]}, KEYED, old) == []
    assert validate({"items": [{"name": "a", "value": 2}]}, KEYED, old) != []
    assert validate({"items": [{"name": [], "value": 4}]}, KEYED, old) != []
