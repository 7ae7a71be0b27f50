import subprocess
import sys
from typing import Any

import pytest

from isvc.apiserver.cel import CelError, compile_expression
from isvc.apiserver.crd.rules import Rules
from isvc.apiserver.crd.structure import check_structure


def spec(*rules, **properties):
    inner = {"type": "object", "properties": properties, "x-kubernetes-validations": list(rules)}
    return {"type": "object", "properties": {"spec": inner}}


def words(schema, value, old=None):
    wrapped = None if old is None else {"spec": old}
    return [str(error) for error in Rules(schema).check({"spec": value}, wrapped)]


NUMBER = {"type": "integer"}
TEXT = {"type": "string"}


def test_a_rule_that_does_not_hold():
    schema = spec({"rule": "self.low <= self.high", "message": " upside down "}, low=NUMBER, high=NUMBER)
    assert words(schema, {"low": 1, "high": 2}) == []
    assert words(schema, {"low": 3, "high": 2}) == ["spec: Invalid value: upside down"]


def test_without_a_message_the_rule_is_told():
    schema = spec({"rule": "self.a == 1"}, a=NUMBER)
    assert words(schema, {"a": 2}) == ["spec: Invalid value: failed rule: self.a == 1"]


def test_messages_paths_and_reasons():
    rule = {
        "rule": "self.a < 5",
        "messageExpression": "'a is ' + string(self.a)",
        "fieldPath": ".a",
        "reason": "FieldValueForbidden",
    }
    assert words(spec(rule, a=NUMBER), {"a": 7}) == ["spec.a: Forbidden: a is 7"]


def test_a_rule_that_fails():
    schema = spec({"rule": "self.missing == 1", "message": "explained"}, missing=NUMBER)
    assert words(schema, {}) == ['spec: Invalid value: "object": no such key: missing evaluating rule: explained']


def test_transition_rules_are_asked_on_updates_only():
    schema = spec(a={"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "fixed"}]})
    assert words(schema, {"a": "1"}) == []
    assert words(schema, {"a": "2"}, {"a": "1"}) == ['spec.a: Invalid value: "2": fixed']
    assert words(schema, {"a": "2"}, {}) == []


def test_what_was_right_before_is_right_in_its_own_place_alone():
    ask = [{"rule": "self.a == 1", "message": "one"}], [{"rule": "self.a == 2", "message": "two"}]
    first, second = ({"type": "object", "properties": {"a": NUMBER}, "x-kubernetes-validations": each} for each in ask)
    rules = Rules(spec(first=first, second=second, several={"type": "array", "items": first}))

    def complaints(**value: Any) -> list[str]:
        return [str(error) for error in rules.check({"spec": value})]

    for _ in range(2):
        assert complaints(first={"a": 1}, second={"a": 2}, several=[{"a": 1}]) == []
        assert complaints(second={"a": 1}) == ["spec.second: Invalid value: two"]
        assert complaints(several=[{"a": 1}, {"a": 2}]) == ["spec.several[1]: Invalid value: one"]


def test_items_of_a_list_that_stays_as_it_is_are_not_asked_again():
    item = {"type": "object", "properties": {"a": NUMBER}, "x-kubernetes-validations": [{"rule": "self.a == 1"}]}
    schema = spec(several={"type": "array", "items": item}, b=NUMBER)
    wrong = {"several": [{"a": 2}]}
    assert words(schema, {**wrong, "b": 1}, wrong) == []
    assert words(schema, {"several": [{"a": 2}, {"a": 1}]}, wrong) == [
        "spec.several[0]: Invalid value: failed rule: self.a == 1"
    ]


def test_optional_old_self():
    rule = {"rule": "oldSelf.hasValue() || self.a == 1", "optionalOldSelf": True, "message": "start with 1"}
    schema = spec(rule, a=NUMBER)
    assert words(schema, {"a": 2}) == ["spec: Invalid value: start with 1"]
    assert words(schema, {"a": 2}, {"a": 1}) == []


def test_unchanged_values_are_not_asked_about_again():
    schema = spec({"rule": "self.a < 5"}, a=NUMBER, b=NUMBER)
    assert words(schema, {"a": 9}, {"a": 9}) == []
    assert len(words(schema, {"a": 9, "b": 1}, {"a": 9})) == 1


def test_names_that_cel_cannot_write_are_escaped():
    schema = spec({"rule": "self.__namespace__ == self.x__dash__y"}, **{"namespace": TEXT, "x-y": TEXT})
    assert words(schema, {"namespace": "a", "x-y": "a"}) == []
    assert len(words(schema, {"namespace": "a", "x-y": "b"})) == 1


def test_items_of_keyed_lists_have_old_values_and_maps_are_walked():
    item: dict[str, Any] = {"type": "object", "properties": {"k": TEXT, "v": NUMBER}}
    item["x-kubernetes-validations"] = [{"rule": "self.v >= oldSelf.v", "message": "grows"}]
    listed = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": item}
    schema = spec(l=listed, m={"type": "object", "additionalProperties": item})
    old = {"l": [{"k": "a", "v": 1}, {"k": "b", "v": 5}], "m": {"x": {"v": 3}}}
    new = {"l": [{"k": "b", "v": 4}, {"k": "a", "v": 1}], "m": {"x": {"v": 2}}}
    assert words(schema, new, old) == ["spec.l[0]: Invalid value: grows", "spec.m[x]: Invalid value: grows"]


@pytest.mark.parametrize(
    "expression",
    [
        "quantity('200M').compareTo(quantity('0.2G')) == 0",
        "quantity('50k').add(quantity('20k')) == quantity('70k')",
        "quantity('50k').sub(20000) == quantity('30k')",
        "quantity('150Mi').isGreaterThan(quantity('100Mi'))",
        "isQuantity('1.3Gi') && !isQuantity('1,3G')",
        "url('https://example.com:80/p?k=a&k=b').getQuery()['k'] == ['a', 'b']",
        "url('https://[::1]:80/').getHostname() == '::1'",
        "url('https://example.com:80/').getHost() == 'example.com:80'",
        "isURL('/absolute-path') && !isURL('../relative-path')",
        "ip('192.168.0.1').family() == 4 && isIP('::1') && !isIP('x')",
        "cidr('10.0.0.0/8').containsIP('10.1.2.3') && !cidr('10.0.0.0/8').containsIP(ip('11.0.0.1'))",
        "cidr('192.168.0.1/24').masked() == cidr('192.168.0.0/24')",
        "['a', 'b', 'b'].isSorted() && !([2, 1].isSorted())",
        "[1, 3].sum() == 4 && [1, 3].max() == 3",
        "'abc 123'.find('[0-9]+') == '123' && '1 2'.findAll('[0-9]') == ['1', '2']",
        "sets.contains([1, 2], [1]) && sets.equivalent([1, 2], [2, 1]) && !sets.intersects([1], [2])",
        "semver('1.2.3').isLessThan(semver('1.10.0')) && semver('1.2.3').minor() == 2",
        "'a-b'.split('-') == ['a', 'b'] && 'AbC'.lowerAscii() == 'abc'",
        "'abc'.charAt(1) == 'b' && 'abcb'.indexOf('b') == 1 && 'abcb'.lastIndexOf('b') == 3",
        "['a', 'b'].join('-') == 'a-b' && 'a'.upperAscii() == 'A' && 'aa'.replace('a', 'b') == 'bb'",
        "'abc'.substring(1) == 'bc'",
        "' a '.trim() == 'a'",
        "'ab'.reverse () == 'ba'",
        "'%d'.format([1]) == '1'",
        "strings.quote('a') == '\"a\"'",
        "optional.none().orValue(1) == 1",
        "{'a': 1}.?a.value() == 1 && [1][?2].hasValue() == false",
        "{?'a': {'b': 1}.?b} == {'a': 1}",
        "[1, 2].first().value() == 1",
        "cel.bind(x, 2, x * x) == 4",
        "math.greatest(1, 2) == 2",
        "base64.encode(b'a') == 'YQ=='",
    ],
)
def test_the_functions_of_kubernetes(expression):
    assert compile_expression(expression).evaluate({}) is True


def test_only_the_extensions_that_an_expression_uses_are_loaded():
    program = "from isvc.apiserver.cel import compile_expression as c; import sys\n{}\n"
    program += "print(*sorted(name for name in sys.modules if name.startswith('cel_expr_python.ext.ext_')))"
    for expression, loaded in {"self.size() > 1": "", "'a'.trim() == self": "cel_expr_python.ext.ext_strings"}.items():
        command = [sys.executable, "-c", program.format(f"c({expression!r})")]
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == loaded


def test_expressions_that_do_not_compile():
    with pytest.raises(CelError, match="undeclared reference to 'nope'"):
        compile_expression("nope(1)")


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("self.size > 1", ""),
        ("self.size > 1.5 && self.ratio < 2", ""),
        ("self.labels['a'] == 'b' && self.labels.all(k, k.size() < 3)", ""),
        ("self.parts.all(p, p.__namespace__ == p.namespace)", ""),
        ("self.matrix[0][0] == 1 || self.port == 'http' || self.port == 80", ""),
        ("self.since == '2020-01-01T00:00:00Z'", ""),
        ("self.size == 'a'", "found no matching overload for '_==_' applied to '(int, string)'"),
        ("self.sise == 1", "undefined field 'sise'"),
        ("self.parts.exists(p, p.other)", "undefined field 'other'"),
        ("self.size.a == 1", "type 'int' does not support field selection"),
        ("self.free == 1", "undefined field 'free'"),
    ],
)
def test_rules_are_typed_by_their_schema(rule, problem):
    schema = {
        "type": "object",
        "properties": {
            "size": {"type": "integer"},
            "ratio": {"type": "number"},
            "since": {"type": "string", "format": "date-time"},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "matrix": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
            "parts": {"type": "array", "items": {"type": "object", "properties": {"namespace": {"type": "string"}}}},
            "port": {"x-kubernetes-int-or-string": True},
            "free": {"x-kubernetes-preserve-unknown-fields": True},
        },
        "x-kubernetes-validations": [{"rule": rule}],
    }
    found = check_structure(schema, "schema")
    assert [problem in error.message for error in found] == ([True] if problem else [])
