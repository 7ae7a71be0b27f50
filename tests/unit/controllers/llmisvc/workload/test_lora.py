"""LoRA adapters: downloaded or mounted beside the model, and loaded by arguments."""

from __future__ import annotations

import pytest
from tests.growth import assert_grows_as_its_input
from tests.unit.controllers.llmisvc.workload.workloads import POD, container, workload

from isvc.controllers.llmisvc.observed import Merged, Observed
from isvc.controllers.llmisvc.workload.lora import resolve_adapters
from isvc.controllers.llmisvc.workload.storage import Target, attach_model
from isvc.kube.objects import Object, deep_copy
from isvc.serving.refused import Refused


def adapted(uri: str, *adapters: tuple[str, str], **lora: int) -> Observed:
    given = [{"name": name, "uri": where} for name, where in adapters]
    return workload(uri, model={"lora": {"adapters": given, **lora}})


def attached(observed: Observed, pod: Object = POD) -> Object:
    pod = deep_copy(pod)
    attach_model(observed, pod, Target(adapters=resolve_adapters(observed.spec)), None, None)
    return pod


def test_adapters_are_downloaded_with_the_model_or_mounted() -> None:
    pod = attached(adapted("hf://a/b", ("sql", "hf://a/sql"), ("law", "pvc://claim/law")))
    initializer = container(pod, "storage-initializer")
    assert initializer["args"] == ["hf://a/b", "/mnt/models", "hf://a/sql", "/mnt/lora/sql"]
    assert initializer["volumeMounts"] == [{"name": "kserve-provision-location", "mountPath": "/mnt"}]
    mounts = {mount["name"]: mount["mountPath"] for mount in container(pod)["volumeMounts"]}
    assert mounts == {"kserve-provision-location": "/mnt", "lora-pvc-law": "/mnt/lora/law"}


def test_the_server_loads_them_under_both_names_before_arguments_of_the_user() -> None:
    pod = {"containers": [{"name": "main", "args": ["--own"]}]}
    observed = adapted("pvc://c/m", ("sql", "pvc://c/sql"), maxRank=64, maxCpuAdapters=2)
    assert container(attached(observed, pod))["args"] == [
        "--enable-lora",
        "--max-lora-rank=64",
        "--max-cpu-loras=2",
        "--lora-modules",
        '\'{"name":"sql","path":"/mnt/lora/sql"}\'',
        '\'{"name":"publishers/models/models/sql","path":"/mnt/lora/sql"}\'',
        "--own",
    ]


@pytest.mark.parametrize(
    "given",
    [
        {"args": ["--lora-modules", "x=/y"]},
        {"command": ["sh", "-c", "vllm serve --lora-modules x=/y"]},
        {"env": [{"name": "VLLM_ADDITIONAL_ARGS", "value": "--lora-modules x=/y"}]},
    ],
)
def test_a_server_that_is_told_what_to_load_is_left_alone(given: Object) -> None:
    pod = {"containers": [{"name": "main", **given}]}
    found = container(attached(adapted("pvc://c/m", ("sql", "pvc://c/sql")), pod))
    assert {key: found.get(key) for key in given} == given


def test_their_order_in_the_spec_changes_nothing() -> None:
    one, other = ("a", "hf://x/a"), ("b", "hf://x/b")
    assert attached(adapted("hf://m/m", one, other)) == attached(adapted("hf://m/m", other, one))


@pytest.mark.parametrize(
    ("uri", "words"),
    [("oci://host/image", "oci:// is not supported"), ("gs://b/a", "unsupported URI scheme"), ("sql", "invalid URI")],
)
def test_adapters_from_elsewhere_are_refused(uri: str, words: str) -> None:
    with pytest.raises(Refused, match=words):
        resolve_adapters(adapted("hf://a/b", ("sql", uri)).spec)


@pytest.mark.parametrize("uri", ["hf://a/sql", "pvc://claim"])
def test_adapters_need_the_initializer(uri: str) -> None:
    raw = adapted("hf://a/b", ("sql", uri)).merged.raw | {"storageInitializer": {"enabled": False}}
    with pytest.raises(Refused, match=r"storageInitializer\.enabled"):
        resolve_adapters(Merged.of(raw).spec)


def test_two_adapters_never_share_a_folder() -> None:
    with pytest.raises(Refused, match='"a-b" and "a/b" would both be mounted at /mnt/lora/a-b'):
        resolve_adapters(adapted("hf://a/b", ("a/b", "hf://x/1"), ("a-b", "hf://x/2")).spec)


@pytest.mark.parametrize("uri", ["hf://x/1", "pvc://claim/1"])
def test_many_adapters_take_time_in_proportion(uri: str) -> None:
    """An object of a megabyte has thousands, and while they are read all other services wait."""
    observed = {size: adapted("hf://a/b", *((f"a{each}", uri) for each in range(size))) for size in (500, 4_000)}
    assert_grows_as_its_input(lambda size: attached(observed[size]), 500)


def test_a_name_that_is_no_label_still_gives_a_volume() -> None:
    pod = attached(adapted("pvc://c/m", ("Law/FR", "pvc://c/1"), ("law-fr", "pvc://c/2")))
    volumes = [volume["name"] for volume in pod["volumes"][1:]]
    assert len(set(volumes)) == 2
    assert all(name.replace("-", "").isalnum() and name.islower() for name in volumes)


def test_a_name_cannot_lead_out_of_the_folder() -> None:
    found = resolve_adapters(adapted("hf://a/b", ("..", "hf://x/1")).spec)
    assert found[0].path == "/mnt/lora/adapter"
