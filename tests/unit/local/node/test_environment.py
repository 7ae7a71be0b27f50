from __future__ import annotations

import os

import pytest

from isvc.local.node.environment import (
    MOST_EXPANDED,
    Missing,
    Sources,
    container_env,
    expand,
    expand_words,
    references,
    resource_value,
)

POD = {
    "metadata": {"name": "p", "namespace": "ns", "uid": "u", "labels": {"app": "iris"}, "annotations": {"a": 'b"'}},
    "spec": {"nodeName": "local"},
    "status": {"podIP": "127.0.0.1"},
}
SOURCES = Sources({"cm": {"KEY": "value"}, "gone": None}, {"s": {"TOKEN": "t"}})


def env(*items, **container):
    return container_env(POD, {"name": "c", "env": list(items), **container}, SOURCES)


def field(path):
    return {"name": "X", "valueFrom": {"fieldRef": {"fieldPath": path}}}


def test_references_to_earlier_variables_are_expanded():
    found = env(
        {"name": "A", "value": "1"}, {"name": "B", "value": "$(A)-$(UNKNOWN)-$$(A)"}, {"name": "C", "value": "$(B)"}
    )
    assert found == {"A": "1", "B": "1-$(UNKNOWN)-$(A)", "C": "1-$(UNKNOWN)-$(A)"}
    assert expand("$(A) $$ $", {"A": "x"}) == "x $ $"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "p"),
        ("metadata.labels['app']", "iris"),
        ("metadata.annotations", 'a="b\\""'),
        ("spec.nodeName", "local"),
        ("status.podIP", "127.0.0.1"),
    ],
)
def test_the_downward_api(path, value):
    assert env(field(path)) == {"X": value}


def test_config_maps_and_secrets():
    found = env(
        {"name": "K", "valueFrom": {"configMapKeyRef": {"name": "cm", "key": "KEY"}}},
        {"name": "O", "valueFrom": {"secretKeyRef": {"name": "none", "key": "x", "optional": True}}},
        envFrom=[{"prefix": "P_", "secretRef": {"name": "s"}}],
    )
    assert found == {"P_TOKEN": "t", "K": "value"}
    with pytest.raises(Missing, match='secret "none" not found'):
        env({"name": "X", "valueFrom": {"secretKeyRef": {"name": "none", "key": "x"}}})
    with pytest.raises(Missing, match="couldn't find key no in ConfigMap cm"):
        env({"name": "X", "valueFrom": {"configMapKeyRef": {"name": "cm", "key": "no"}}})


def test_names_to_look_up():
    container = {
        "env": [{"name": "X", "valueFrom": {"secretKeyRef": {"name": "s", "key": "x"}}}, {"name": "Y", "value": "1"}],
        "envFrom": [{"configMapRef": {"name": "cm"}}],
    }
    assert references({"spec": {"initContainers": [container], "containers": [{}]}}) == ({"cm"}, {"s"})


@pytest.mark.parametrize(
    ("resource", "divisor", "value"),
    [
        ("limits.cpu", None, "2"),
        ("limits.cpu", "1m", "1500"),
        ("limits.memory", "1Mi", "1024"),
        ("requests.cpu", None, "2"),
    ],
)
def test_resources(resource, divisor, value):
    container = {"resources": {"limits": {"cpu": "1500m", "memory": "1Gi"}}}
    assert resource_value(POD, container, {"resource": resource, "divisor": divisor}) == value


def test_no_limit_is_all_the_machine_has():
    assert resource_value(POD, {}, {"resource": "limits.cpu"}) == str(os.cpu_count())
    assert int(resource_value(POD, {}, {"resource": "limits.memory", "divisor": "1Mi"})) > 0
    assert resource_value(POD, {}, {"resource": "requests.cpu"}) == "0"


def test_variables_that_double_one_another_do_not_fill_the_memory():
    doubled = [{"name": f"A{each + 1}", "value": f"$(A{each})$(A{each})"} for each in range(24)]
    with pytest.raises(OSError, match="Argument list too long"):
        container_env(POD, {"env": [{"name": "A0", "value": "x"}, *doubled]}, Sources())


def test_a_command_line_that_repeats_a_long_variable_does_not_fill_the_memory():
    long = {"A": "x" * (MOST_EXPANDED // 4)}
    assert expand_words(["$(A)", "$(A)$(A)"], long) == [long["A"], long["A"] * 2]
    for words in (["$(A)"] * 5, ["$(A)" * 5]):
        with pytest.raises(OSError, match="Argument list too long"):
            expand_words(words, long)
