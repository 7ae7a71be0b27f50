"""The endpoint picker's configuration: where it comes from, how older ones are rewritten, and what cannot be."""

from __future__ import annotations

from typing import Any

import pytest

from isvc.api.codec import decode
from isvc.api.llm.v1alpha2 import LLMInferenceServiceSpec, SchedulerSpec
from isvc.controllers.llmisvc.scheduler.config import text
from isvc.controllers.llmisvc.scheduler.config.migrations import use_tokenizer_beside
from isvc.controllers.llmisvc.scheduler.config.rewrite import rewrite
from isvc.controllers.llmisvc.scheduler.config.source import config_arguments
from isvc.controllers.llmisvc.scheduler.features import wants_latency_predictor, wants_tokenizer
from isvc.kube.objects import Object
from isvc.serving.refused import Refused

URL = "http://tokens:8000"
TOKENS = "{plugins: [{type: token-producer}]}"


def deployment(version: str | None, args: list[str], *containers: Object, command: list[str] | None = None) -> Object:
    metadata = {"annotations": {"app.kubernetes.io/version": version}} if version is not None else {}
    main: Object = {"name": "main", "args": args, **({"command": command} if command else {})}
    template = {"metadata": metadata, "spec": {"containers": [main, *containers]}}
    return {"metadata": {"name": "d", "namespace": "n"}, "spec": {"template": template}}


def rewritten(
    version: str, *plugins: Object, url: str | None = None, args: tuple[str, ...] = (), **more: Any
) -> Object:
    config = {"kind": "EndpointPickerConfig", "plugins": list(plugins), **more}
    made = deployment(version, [*args, "--config-text", text.dump(config)])
    rewrite(made, url)
    read = text.load_config(made["spec"]["template"]["spec"]["containers"][0]["args"][-1])
    assert read is not None
    return read


def types(config: Object) -> list[str]:
    return [plugin["type"] for plugin in config["plugins"]]


# -- where it comes from --------------------------------------------------------------------------------------------


def scheduled(**scheduler: Any) -> SchedulerSpec:
    return decode(SchedulerSpec, scheduler)


def arguments(running: Object, spec: Object | None = None, **scheduler: Any) -> list[str]:
    return config_arguments(decode(LLMInferenceServiceSpec, spec or {}), scheduled(**scheduler), running)


def test_what_the_service_says_comes_first_then_its_template_then_what_runs() -> None:
    template = {"containers": [{"name": "main", "args": ["--config-file", "/f"]}]}
    running = {"containers": [{"name": "main", "args": ["-configText", "old"]}]}
    assert arguments(running, config={"inline": "kind: X"}, template=template)[1] == "kind: X"
    assert arguments(running, template=template) == []
    assert arguments(running, template={}) == ["-configText", "old"]
    assert "single-profile-handler" in arguments({}, template={})[1]


def test_an_object_is_handed_over_as_the_json_that_go_writes() -> None:
    inline = {"z": [{"b": 1, "a": "<&>"}], "a": None}
    assert arguments({}, config={"inline": inline})[1] == r'{"a":null,"z":[{"a":"\u003c\u0026\u003e","b":1}]}'


def test_disaggregated_services_and_adapters_get_plugins_of_their_own() -> None:
    config = text.load(arguments({}, {"prefill": {}, "model": {"lora": {"adapters": [{}]}}})[1])
    assert [profile["name"] for profile in config["schedulingProfiles"]] == ["prefill", "decode"]
    assert config["schedulingProfiles"][0]["plugins"][:2] == [
        {"pluginRef": "prefill-filter"},
        {"pluginRef": "lora-affinity-scorer", "weight": 4},
    ]
    assert types(config)[-1] == "lora-affinity-scorer"


@pytest.mark.parametrize(
    ("scheduler", "tokenizer", "predictor"),
    [
        ({}, False, False),
        ({"tokenizer": {}}, True, False),
        ({"config": {"inline": {"plugins": [{"type": "token-producer"}]}}}, True, False),
        ({"config": {"inline": "plugins: [{type: precise-prefix-cache-scorer}]"}}, True, False),
        ({"config": {"inline": {"plugins": [{"type": "predicted-latency-producer"}]}}}, False, True),
        (
            {
                "template": {
                    "containers": [{"name": "main", "args": ["--config-text", "{plugins: [{type: token-producer}]}"]}]
                }
            },
            True,
            False,
        ),
        ({"config": {"inline": "no: [yaml"}}, False, False),
    ],
)
def test_what_a_configuration_asks_for_beside_the_picker(scheduler: Object, tokenizer: bool, predictor: bool) -> None:
    given = scheduled(**scheduler)
    assert (wants_tokenizer(given), wants_latency_predictor(given)) == (tokenizer, predictor)
    assert not wants_tokenizer(None)


# -- as text --------------------------------------------------------------------------------------------------------


def test_yaml_is_written_as_go_writes_it() -> None:
    given = {"b": "1", "a": "yes", "n": "y", "m": [{"z": 1.0, "_": "a: b"}], "l": "x\ny\n", "d": "2001-01-01"}
    assert text.dump(given).splitlines() == [
        'a: "yes"',
        'b: "1"',
        'd: "2001-01-01"',
        "l: |",
        "  x",
        "  y",
        "m:",
        "- _: 'a: b'",
        "  z: 1",
        '"n": "y"',
    ]


def test_numbers_and_what_looks_like_one_survive_being_read_and_written() -> None:
    given = {"exponent": "1e3", "large": 1e20, "number": 1e3, "time": "1:30"}
    written = text.dump(given)
    assert 'exponent: "1e3"' in written
    assert text.load(written) == given
    assert text.load("exponent: 1e3\nlarge: 1e+20\nnumber: 1000\ntime: 1:30") == {**given, "exponent": 1000}


def test_text_that_is_no_configuration_stays_as_it_is() -> None:
    for given in ("just words", "[1, 2]", "plugins: []", "{broken"):
        made = deployment("0.10.0", ["--config-text", given])
        rewrite(made, URL)
        assert made["spec"]["template"]["spec"]["containers"][0]["args"] == ["--config-text", given]


# -- versions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [None, "", "0.6.9", "0.7.0-rc.1"])
def test_nothing_is_rewritten_for_programs_that_know_the_older_names(version: str | None) -> None:
    made = deployment(version, ["--config-text", "kind: X\nplugins: [{type: pd-profile-handler}]"])
    rewrite(made, URL)
    assert "pd-profile-handler" in made["spec"]["template"]["spec"]["containers"][0]["args"][1]


@pytest.mark.parametrize(
    ("version", "problem"),
    [
        ("latest", "latest is not in dotted-tri format"),
        ("v0.9.0", 'strconv.ParseInt: parsing "v0": invalid syntax'),
        ("0.9.0.1", 'strconv.ParseInt: parsing "0.1": invalid syntax'),
    ],
)
def test_a_version_that_is_none_is_refused(version: str, problem: str) -> None:
    with pytest.raises(Refused) as refused:
        rewrite(deployment(version, []), None)
    assert str(refused.value) == f'failed to parse version "{version}": {problem}'


OLD = {
    "apiVersion": "inference.networking.x-k8s.io/v1alpha1",
    "kind": "EndpointPickerConfig",
    "plugins": [{"type": "a"}],
}


@pytest.mark.parametrize(
    ("version", "image", "running", "is_left"),
    [
        ("0.9.0", "picker:v0.9.0", OLD, True),
        ("0.9.1", "picker:v0.9.1", OLD, False),  # it restarts for its image, and may as well have the new one
        ("0.9.0", "picker:v0.9.0", {**OLD, "plugins": [{"type": "b"}]}, False),
        ("0.10.0", "picker:v0.9.0", OLD, False),
    ],
    ids=["as it runs", "another image", "another configuration", "a version that may not read it"],
)
def test_a_running_picker_is_not_restarted_for_an_api_version(
    version: str, image: str, running: Object, *, is_left: bool
) -> None:
    """KServe 0.20 gave pickers of 0.9 the old one, and does not write as we do."""
    live = {"containers": [{"name": "main", "image": "picker:v0.9.0", "args": ["--config-text", f"# said\n{running}"]}]}
    made = deployment(version, ["--config-text", text.dump(OLD)])
    [main] = made["spec"]["template"]["spec"]["containers"]
    main["image"] = image
    rewrite(made, None, live)
    assert (main["args"] == live["containers"][0]["args"]) is is_left
    assert is_left or "llm-d.ai/v1alpha1" in main["args"][1]


def test_renamed_plugins_are_renamed_where_they_are_referred_to() -> None:
    profiles = [{"name": "p", "plugins": [{"pluginRef": "prefill-header-handler"}]}]
    config = rewritten("0.7.0", {"type": "prefill-header-handler"}, schedulingProfiles=profiles)
    assert types(config) == ["disagg-headers-handler"]
    assert config["schedulingProfiles"][0]["plugins"] == [{"pluginRef": "disagg-headers-handler"}]


@pytest.mark.parametrize(
    ("parameters", "decider", "declared"),
    [
        ({"threshold": 0}, "always-disagg-pd-decider", [{"type": "always-disagg-pd-decider"}]),
        (
            {"threshold": 9},
            "prefix-based-pd-decider",
            [{"type": "prefix-based-pd-decider", "parameters": {"nonCachedTokens": 3}}],
        ),
        (
            {"threshold": -5},
            "prefix-based-pd-decider",
            [{"type": "prefix-based-pd-decider", "parameters": {"nonCachedTokens": 1}}],
        ),
        ({"deciderPluginName": "mine", "threshold": 9}, "mine", []),
    ],
)
def test_a_threshold_becomes_a_decider_that_is_declared_before_its_handler(
    parameters: Object, decider: str, declared: list[Object]
) -> None:
    config = rewritten("0.7.0", {"type": "first"}, {"type": "pd-profile-handler", "parameters": parameters})
    handler = {"type": "disagg-profile-handler", "parameters": {"deciders": {"prefill": decider}}}
    assert config["plugins"] == [{"type": "first"}, *declared, handler]


def test_metric_flags_become_parameters() -> None:
    config = rewritten("0.7.0", args=("--lora-info-metric=l", "--cache-info-metric", "c"))
    assert config["plugins"][0]["type"] == "model-server-protocol-metrics"
    assert config["plugins"][0]["parameters"]["engineConfigs"] == [
        {"name": "vllm", "loraSpec": "l", "cacheInfoSpec": "c"}
    ]
    assert types(rewritten("0.8.0", args=("--lora-info-metric=l",))) == ["core-metrics-extractor"]


def test_flags_for_reading_metrics_become_parameters_and_the_port_goes() -> None:
    made = deployment(
        "0.10.0",
        ["--config-text", "kind: X", "--model-server-metrics-https-insecure-skip-verify"],
        command=["epp", "--model-server-metrics-scheme=https", "--model-server-metrics-port", "80"],
    )
    rewrite(made, None)
    main = made["spec"]["template"]["spec"]["containers"][0]
    assert main["command"] == ["epp"]
    parameters = {"scheme": "https", "insecureSkipVerify": True}
    assert text.load(main["args"][1])["plugins"] == [{"type": "metrics-data-source", "parameters": parameters}]


@pytest.mark.parametrize(
    ("version", "flag", "problem"),
    [
        ("0.7.0", "--lora-info-metric=l", "uses deprecated metric flags"),
        ("0.10.0", "--model-server-metrics-path=/m", "sets deprecated --model-server-metrics-path"),
    ],
)
def test_flags_that_cannot_move_are_not_lost_in_silence(version: str, flag: str, problem: str) -> None:
    with pytest.raises(Refused, match=f"n/d {problem}.*convert to --config-text or remove the"):
        rewrite(deployment(version, ["--config-file", "/f", flag]), None)


def test_the_precise_scorer_becomes_three_plugins_in_its_place() -> None:
    old = {
        "type": "precise-prefix-cache-scorer",
        "parameters": {"indexerConfig": {"tokenizersPoolConfig": {}, "tokenProcessorConfig": {"a": 1}, "kept": 2}},
    }
    references = [{"pluginRef": "precise-prefix-cache-scorer", "weight": 2}, {"pluginRef": "prefix-cache-scorer"}]
    profiles = [{"name": "p", "plugins": references}]
    plugins = ({"type": "first"}, old, {"type": "prefix-cache-scorer"}, {"type": "last"})
    config = rewritten("0.9.0", *plugins, url=URL, schedulingProfiles=profiles)
    assert config["plugins"] == [
        {"type": "first"},
        {"type": "token-producer", "parameters": {"modelName": "/mnt/models/base", "vllm": {"url": URL}}},
        {
            "type": "precise-prefix-cache-producer",
            "parameters": {"tokenProcessorConfig": {"a": 1}, "indexerConfig": {"kept": 2}},
        },
        {"type": "prefix-cache-scorer", "parameters": {"prefixMatchInfoProducerName": "precise-prefix-cache-producer"}},
        {"type": "last"},
    ]
    assert config["schedulingProfiles"][0]["plugins"] == [{"pluginRef": "prefix-cache-scorer", "weight": 2}]


def test_a_token_producer_learns_where_the_tokenizer_is_unless_it_knows() -> None:
    own = {"type": "token-producer", "parameters": {"modelName": "m", "vllm": {"url": "http://mine"}}}
    plain, given = rewritten("0.9.0", {"type": "token-producer"}, own, url=URL)["plugins"]
    assert plain["parameters"] == {"modelName": "/mnt/models/base", "vllm": {"url": URL}}
    assert given == own


def test_a_tokenizer_beside_the_picker_goes_when_nothing_asks_it() -> None:
    made = deployment("0.9.0", ["--config-text", "kind: X\nplugins: [{type: a}]"], {"name": "tokenizer"})
    rewrite(made, None)
    assert [each["name"] for each in made["spec"]["template"]["spec"]["containers"]] == ["main"]


def test_a_tokenizer_beside_the_picker_is_reached_by_its_socket() -> None:
    config: Object = {
        "plugins": [
            {
                "type": "precise-prefix-cache-scorer",
                "parameters": {"indexerConfig": {"tokenProcessorConfig": {"a": 1}}},
            },
            {"type": "prefix-cache-scorer", "parameters": {"blockSize": 5}},
        ]
    }
    use_tokenizer_beside(config)
    precise, scorer = (plugin["parameters"] for plugin in config["plugins"])
    assert precise["indexerConfig"]["tokenizersPoolConfig"]["modelName"] == "base"
    assert precise["tokenProcessorConfig"] == {"a": 1}
    assert scorer == {"blockSize": 5, "blockSizeTokens": 5}
