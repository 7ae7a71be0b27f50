"""Whatever a configuration says, it is rewritten or refused, and rewriting it again changes nothing."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isvc.controllers.llmisvc.scheduler.config import text
from isvc.controllers.llmisvc.scheduler.config.migrations import use_tokenizer_beside
from isvc.controllers.llmisvc.scheduler.config.rewrite import edit_configs, rewrite
from isvc.controllers.llmisvc.scheduler.config.text import load_config
from isvc.kube.objects import Object
from isvc.serving.refused import Refused

TYPES = (
    "precise-prefix-cache-scorer",
    "prefix-cache-scorer",
    "token-producer",
    "pd-profile-handler",
    "disagg-profile-handler",
    "prefill-header-handler",
    "model-server-protocol-metrics",
    "other",
)
FIELDS = (
    "threshold",
    "deciderPluginName",
    "deciders",
    "hashBlockSize",
    "indexerConfig",
    "tokenProcessorConfig",
    "vllm",
)
INNER = ("tokenizersPoolConfig", "tokenProcessorConfig", "uds", "url", "rest")
FLAGS = ("--lora-info-metric=l", "--model-server-metrics-scheme", "https", "--model-server-metrics-port=1", "--v=4")

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 9), st.floats(-2, 9), st.sampled_from(["", "0", "x", "yes"])
)
values = st.one_of(scalars, st.lists(scalars, max_size=2), st.dictionaries(st.sampled_from(INNER), scalars, max_size=3))
nested = st.one_of(values, st.dictionaries(st.sampled_from(INNER), values, max_size=3))
parameters = st.one_of(scalars, st.dictionaries(st.sampled_from(FIELDS), nested, max_size=4))
plugin = st.one_of(
    scalars, st.fixed_dictionaries({"type": st.sampled_from(TYPES)}, optional={"parameters": parameters})
)
plugins = st.one_of(scalars, st.lists(plugin, max_size=5))
reference = st.one_of(scalars, st.fixed_dictionaries({"pluginRef": st.sampled_from(TYPES)}))
profile = st.one_of(scalars, st.fixed_dictionaries({"plugins": st.one_of(scalars, st.lists(reference, max_size=3))}))
configs = st.fixed_dictionaries(
    {"kind": st.just("EndpointPickerConfig")},
    optional={"plugins": plugins, "schedulingProfiles": st.one_of(scalars, st.lists(profile, max_size=2))},
)


def deployment(version: str, arguments: list[str]) -> Object:
    containers = [{"name": "main", "args": arguments}, {"name": "tokenizer"}]
    template = {"metadata": {"annotations": {"app.kubernetes.io/version": version}}, "spec": {"containers": containers}}
    return {"metadata": {"name": "d", "namespace": "n"}, "spec": {"template": template}}


@given(
    version=st.sampled_from(["0.7.0", "0.8.0", "0.9.0", "0.10.0"]),
    config=configs,
    more=st.lists(st.sampled_from(FLAGS), max_size=3),
    url=st.sampled_from([None, "http://tokens"]),
)
def test_any_configuration_is_rewritten_once(version: str, config: Any, more: list[str], url: str | None) -> None:
    made = deployment(version, [*more, "--config-text", text.dump(config)])
    try:
        edit_configs(made["spec"]["template"]["spec"], use_tokenizer_beside)
        rewrite(made, url)
    except Refused:
        return
    (main, *_) = made["spec"]["template"]["spec"]["containers"]
    again = deployment(version, list(main["args"]))
    rewrite(again, url)
    assert again["spec"]["template"]["spec"]["containers"][0]["args"] == main["args"]


@pytest.mark.parametrize(
    "text",
    [
        "[" * 50_000,
        "{a: " * 50_000,
        "- " * 50_000 + "x",
        "a: &a [x,x,x,x,x,x,x,x,x]\n"
        + "".join(f"{new}: &{new} [{','.join(['*' + old] * 9)}]\n" for old, new in pairwise("abcdefghi")),
    ],
)
def test_a_text_that_would_end_the_program_is_no_configuration(text: str) -> None:
    """Whoever writes a service writes it; what a segmentation fault ends is everybody's manager, again and again."""
    assert load_config(text) is None


def test_a_text_may_repeat_itself_by_aliases() -> None:
    text = "kind: EndpointPickerConfig\nplugins: [&a {type: x, name: a}, *a]\n"
    plugin = {"type": "x", "name": "a"}
    assert load_config(text) == {"kind": "EndpointPickerConfig", "plugins": [plugin, plugin]}
