"""Specs are laid over each other as Kubernetes merges pods: keyed lists by key, all other lists as a whole."""

from __future__ import annotations

import pytest

from isvc.api import DecodeError
from isvc.serving.llm.merge import merge_specs


def containers(*given: dict) -> dict:
    return {"model": {"uri": "hf://m"}, "template": {"containers": list(given)}}


def test_the_last_spec_wins() -> None:
    merged = merge_specs({"replicas": 1, "labels": {"a": "1", "b": "1"}}, {"replicas": 3, "labels": {"b": "2"}})
    assert merged["replicas"] == 3
    assert merged["labels"] == {"a": "1", "b": "2"}


def test_containers_and_their_variables_merge_by_name() -> None:
    preset = containers({"name": "main", "image": "server", "env": [{"name": "A", "value": "1"}]})
    own = containers({"name": "main", "env": [{"name": "A", "value": "2"}, {"name": "B", "value": "3"}]})
    (main,) = merge_specs(preset, own)["template"]["containers"]
    assert main["image"] == "server"
    assert {each["name"]: each["value"] for each in main["env"]} == {"A": "2", "B": "3"}


def test_a_pod_that_names_no_containers_keeps_those_of_its_preset() -> None:
    own = {"template": {"nodeSelector": {"gpu": "yes"}}, "prefill": {"template": {}}, "worker": {}}
    preset = containers({"name": "main"}) | {"worker": {"containers": [{"name": "main"}]}}
    merged = merge_specs(preset, own)
    assert [each["name"] for each in merged["template"]["containers"]] == ["main"]
    assert [each["name"] for each in merged["worker"]["containers"]] == ["main"]


def test_a_tokenizer_that_names_no_containers_keeps_those_of_its_preset() -> None:
    def tokenizer(**pod: object) -> dict:
        return {"router": {"scheduler": {"tokenizer": {"template": pod}}}}

    merged = merge_specs(tokenizer(containers=[{"name": "main"}]), tokenizer(nodeSelector={"cpu": "yes"}))
    pod = merged["router"]["scheduler"]["tokenizer"]["template"]
    assert ([each["name"] for each in pod["containers"]], pod["nodeSelector"]) == (["main"], {"cpu": "yes"})


def test_rules_of_a_route_are_replaced() -> None:
    def route(*rules: str) -> dict:
        return {"router": {"route": {"http": {"spec": {"rules": [{"name": rule} for rule in rules]}}}}}

    merged = merge_specs(route("a", "b"), route("c"))
    assert [rule["name"] for rule in merged["router"]["route"]["http"]["spec"]["rules"]] == ["c"]


def test_an_empty_uri_takes_nothing_away() -> None:
    assert merge_specs({"model": {"uri": "hf://m", "name": "m"}}, {"model": {"uri": ""}})["model"]["uri"] == "hf://m"


def test_a_spec_of_the_wrong_types_is_refused() -> None:
    with pytest.raises(DecodeError, match="replicas"):
        merge_specs({"replicas": "many"})
