"""Presets filled in with a service: the whole configuration is one template."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from tests.unit.api import conformance

from isvc.api import DecodeError
from isvc.serving.config import Config
from isvc.serving.llm.presets import PresetError, Settings, preset_names, render_preset
from isvc.serving.llm.sample import sample_service

SETTINGS = Settings("kserve", "gateway", "gateways", True, "X-Model")
SHIPPED = conformance.base_objects("LLMInferenceServiceConfig")


def config(*arguments: str, **spec: Any) -> dict[str, Any]:
    pod = {"template": {"containers": [{"name": "main", "args": list(arguments)}]}} if arguments else {}
    return {"metadata": {"name": "preset"}, "spec": {**pod, **spec}}


def arguments(*templates: str, service: dict[str, Any] | None = None) -> list[str]:
    rendered = render_preset(config(*templates), service or sample_service(), SETTINGS)
    found: list[str] = rendered["spec"]["template"]["containers"][0]["args"]
    return found


def test_values_of_the_service_and_of_the_control_plane():
    assert arguments(
        "{{ .Name }}", "{{ .GlobalConfig.IngressGatewayNamespace }}/{{ .GlobalConfig.IngressGatewayName }}"
    ) == [
        "sample",
        "gateways/gateway",
    ]


def test_a_block_may_reach_from_one_string_into_another():
    assert arguments("a{{ if .Spec.Tracing }}", "b", "{{ end }}c") == ["ac"]


def test_the_order_is_that_of_the_fields_in_go():
    spec = {"worker": {"hostname": "{{ $x }}"}, "model": {"uri": "hf://a/b", "name": "{{ $x := `first` }}"}}
    assert render_preset(config(**spec), sample_service(), SETTINGS)["spec"]["worker"]["hostname"] == "first"


def test_the_pool_is_the_one_that_the_configuration_names():
    pool = {"router": {"scheduler": {"pool": {"ref": {"name": "mine"}}}}}
    template = "{{ .GlobalConfig.InferencePoolNamespacedName }}"
    rendered = render_preset(config(labels={"pool": template}, **pool), sample_service(), SETTINGS)
    assert rendered["spec"]["labels"]["pool"] == "sample-namespace/mine"
    assert arguments(template) == ["sample-namespace/sample-inference-pool"]


def test_the_cache_argument_survives_json_and_a_shell():
    service = sample_service()
    service["spec"]["kvCacheOffloading"] = {
        "cpu": "1Gi",
        "evictionPolicy": "lru",
        "secondary": [{}, {"fileSystem": {"emptyDir": {"size": "1Gi"}}}],
    }
    expected_argument = (
        "--kv-transfer-config '{`kv_connector`:`OffloadingConnector`,`kv_connector_extra_config`:"
        "{`cpu_bytes_to_use`:1073741824,`eviction_policy`:`lru`,"
        "`secondary_tiers`:[{`root_dir`:`/mnt/kv-cache-1`,`type`:`fs`}],`spec_name`:`TieringOffloadingSpec`},"
        "`kv_role`:`kv_both`}'"
    )
    assert arguments("{{ kvTransferConfig .Spec.KVCacheOffloading }}", service=service) == [
        expected_argument.replace("`", r"\"")
    ]
    assert arguments("{{ kvTransferConfig .Spec.KVCacheOffloading }}|") == ["|"]


@pytest.mark.parametrize(
    ("parent", "suffix", "expected"),
    [
        ("short", "-x", "short-x"),
        ("a" * 60, "-inference-pool", f"{'a' * 16}cc7ed669cf88f201c3297c6a91e1d18d-inference-pool"),
        (
            "filled",
            "-a-rather-long-suffix-that-makes-the-name-overflow-its-limit",
            "filledab870e7864a0795d43f03f49373bf25b-a-rather-long-suffix-tha",
        ),
    ],
)
def test_long_names_end_in_a_hash(parent: str, suffix: str, expected: str):
    service = {"metadata": {"name": parent}}
    assert arguments(f"{{{{ ChildName .Name `{suffix}` }}}}", service=service) == [expected]


@pytest.mark.parametrize(("grace", "expected"), [(None, "40"), (90, "70"), (12, "0"), (3, "0")])
def test_time_to_shut_down(grace: int | None, expected: str):
    service = sample_service()
    service["spec"]["template"]["terminationGracePeriodSeconds"] = grace
    assert arguments("{{ shutdownTimeout .Spec.Template 15 }}", service=service) == [expected]


def test_fields_of_a_newer_kubernetes_stay():
    pod = {"containers": [{"name": "main", "newField": {"a": "b{{ .Name }}"}}]}
    rendered = render_preset(config(worker=pod), sample_service(), SETTINGS)
    assert rendered["spec"]["worker"]["containers"][0]["newField"] == {"a": "bsample"}


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("{{ .Nope }}", "can't evaluate field Nope"),
        ('{{ index .Labels "x" }}', "backquotes"),
        ("{{ .Name ", "has no closing }}"),
        ("{{ upper .Name }}", 'function "upper" not defined'),
    ],
)
def test_faults_say_where(template: str, problem: str):
    with pytest.raises(PresetError) as refused:
        arguments("fine", template)
    assert refused.value.path == "spec.template.containers[0].args[1]"
    assert problem in refused.value.problem


def test_what_kubectl_apply_has_kept_is_not_filled_in():
    applied = config("{{ .Nope }}")
    kept = {"kubectl.kubernetes.io/last-applied-configuration": orjson.dumps(applied).decode(), "a": "{{ .Name }}"}
    with pytest.raises(PresetError, match=r"^spec\.template\.containers\[0\]\.args\[0\]: {{ \.Nope }}: "):
        render_preset({**applied, "metadata": {"name": "preset", "annotations": kept}}, sample_service(), SETTINGS)
    mended = {**config("{{ .Name }}"), "metadata": {"name": "preset", "annotations": kept}}
    assert render_preset(mended, sample_service(), SETTINGS)["metadata"]["annotations"] == {"a": "sample"}


def test_what_comes_out_must_be_of_the_types():
    with pytest.raises(PresetError, match="no longer JSON"):
        arguments("{{ slice `ab`  1 }}{{ printf `%c` 34 }}")
    with pytest.raises(PresetError, match=r"spec.replicas.*when it is filled in"):
        render_preset(
            config(
                annotations={"a": "{{ printf `%c},%creplicas%c:%cx%c,%cz%c:{%cb%c:%c` 34 34 34 34 34 34 34 34 34 34 }}"}
            ),
            sample_service(),
            SETTINGS,
        )
    with pytest.raises(DecodeError, match=r"spec.replicas"):
        render_preset(config(replicas="two"), sample_service(), SETTINGS)


@pytest.mark.skipif(not SHIPPED, reason="the conformance cases are not here")
@pytest.mark.parametrize("preset", SHIPPED, ids=lambda preset: preset["metadata"]["name"])
def test_shipped_presets_can_be_filled_in(preset: dict[str, Any]):
    rendered = render_preset(preset, sample_service(), Settings.of(Config(), "kserve"))
    assert "{{" not in str(rendered["spec"])


@pytest.mark.skipif(not SHIPPED, reason="the conformance cases are not here")
def test_presets_are_known_by_name():
    assert preset_names() <= {preset["metadata"]["name"] for preset in SHIPPED}
