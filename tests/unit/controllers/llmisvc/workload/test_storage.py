"""How models get into the pods of model servers."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.answers import answers
from tests.unit.controllers.llmisvc.workload.workloads import POD, account, container, observed_with, workload

from isvc.api.annotations import LOCAL_MODEL, LOCAL_MODEL_PVC_NAME, LOCAL_MODEL_SOURCE_URI
from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.workload.lora import resolve_adapters
from isvc.controllers.llmisvc.workload.storage import Target, attach_model, ignores_arguments
from isvc.engine.needs import Needs
from isvc.kube.objects import Object, deep_copy
from isvc.serving.refused import Refused

INITIALIZER = "storage-initializer"


def attached(observed: Observed, pod: Object = POD, live: Object | None = None, **target: Any) -> Object:
    pod = deep_copy(pod)
    attach_model(observed, pod, Target(**target), target.get("account"), live)
    return pod


def configured(observed: Observed, **settings: Any) -> Observed:
    storage = msgspec.structs.replace(observed.config.storage_initializer, **settings)
    return observed_with(observed, config=msgspec.structs.replace(observed.config, storage_initializer=storage))


def environment(of: Object) -> dict[str, Any]:
    return {entry["name"]: entry.get("value") for entry in of.get("env") or ()}


def test_a_download_is_shared_with_the_server_which_may_only_read_it() -> None:
    pod = attached(workload("hf://a/b"))
    initializer = container(pod, INITIALIZER)
    assert initializer["args"] == ["hf://a/b", "/mnt/models"]
    assert initializer["volumeMounts"] == [{"name": "kserve-provision-location", "mountPath": "/mnt/models"}]
    assert container(pod)["volumeMounts"] == [
        {"name": "kserve-provision-location", "mountPath": "/mnt/models", "readOnly": True}
    ]
    assert pod["volumes"] == [{"name": "kserve-provision-location", "emptyDir": {}}]


def test_a_claim_is_mounted_and_needs_no_download() -> None:
    pod = attached(workload("pvc://claim/a/b"))
    assert pod["volumes"] == [{"name": "kserve-pvc-source", "persistentVolumeClaim": {"claimName": "claim"}}]
    assert container(pod)["volumeMounts"][0]["subPath"] == "a/b"
    assert not pod.get("initContainers")


def test_a_cached_model_is_mounted_from_the_claim_of_the_cache() -> None:
    annotations = {LOCAL_MODEL_SOURCE_URI: "hf://a/b", LOCAL_MODEL_PVC_NAME: "cache"}
    metadata = {"labels": {LOCAL_MODEL: "x"}, "annotations": annotations}
    pod = attached(workload("hf://a/b/sub", metadata=metadata))
    assert pod["volumes"][0]["persistentVolumeClaim"] == {"claimName": "cache"}
    assert container(pod)["volumeMounts"][0]["subPath"].endswith("/sub")
    with pytest.raises(Refused, match="localmodel-pvc-name not found"):
        attached(workload("hf://a/b", metadata={**metadata, "annotations": {LOCAL_MODEL_SOURCE_URI: "hf://a/b"}}))


@pytest.mark.parametrize(
    ("uri", "problem"),
    [
        ("gs://bucket/model", "unsupported schema in model URI: gs://bucket/model"),
        ("oci+fetch://host/image", "unsupported schema in model URI: oci+fetch://host/image"),
        ("", "invalid model URI: "),
        ("oci://host/image", "OCI modelcars is not enabled"),
    ],
)
def test_what_cannot_be_brought_is_refused(uri: str, problem: str) -> None:
    with pytest.raises(Refused) as error:
        attached(workload(uri))
    assert error.value.message == problem


def test_an_image_is_a_volume_or_runs_beside_the_server() -> None:
    native = attached(workload("oci+native://host/image:1"))
    assert native["volumes"][0]["image"]["reference"] == "host/image:1"
    for mode in ("modelcar", "fetch"):  # images are not fetched for these servers
        beside = attached(configured(workload("oci://host/image:1"), oci_model_mode=mode))
        assert container(beside, "modelcar")["image"] == "host/image:1"
        assert container(beside, "modelcar-init")["image"] == "host/image:1"
    assert attached(configured(workload("oci://host/image:1"), oci_model_mode="native")) == native


def test_without_the_initializer_nothing_is_brought() -> None:
    given = {**POD, "initContainers": [{"name": INITIALIZER, "image": "mine"}]}
    assert attached(workload(storageInitializer={"enabled": False}), given) == given


def test_a_template_customizes_the_initializer_but_for_what_it_downloads() -> None:
    given = {
        "name": INITIALIZER,
        "image": "mine",
        "args": ["x"],
        "command": ["y"],
        "env": [{"name": "A", "value": "b"}],
    }
    pod = {**POD, "initContainers": [{"name": "first"}, given]}
    observed = workload()
    initializer = container(attached(observed, pod), INITIALIZER)
    assert (initializer["image"], initializer["args"]) == ("mine", ["hf://a/b", "/mnt/models"])
    assert "command" not in initializer
    assert environment(initializer)["A"] == "b"
    assert ignores_arguments(observed, pod)
    assert not ignores_arguments(workload("pvc://claim"), pod)


@pytest.mark.parametrize(("uri", "stays"), [("hf://a/b", True), ("oci+native://host/image:1", False)])
def test_a_customized_initializer_goes_where_nothing_is_downloaded(uri: str, stays: bool) -> None:
    pod = {**POD, "initContainers": [{"name": "first"}, {"name": INITIALIZER, "image": "mine"}]}
    names = [each["name"] for each in attached(workload(uri), pod)["initContainers"]]
    assert names == (["first", INITIALIZER] if stays else ["first"])


def test_a_deployed_image_stays_when_the_control_plane_is_upgraded() -> None:
    deployed = attached(workload())
    container(deployed, INITIALIZER)["image"] = "initializer:old"
    assert container(attached(workload(), live=deployed), INITIALIZER)["image"] == "initializer:old"


def test_hugging_face_is_tuned_unless_that_would_restart_servers() -> None:
    default = {"default": account("default")}
    tuned = attached(workload(accounts=default))
    assert environment(container(tuned, INITIALIZER))["HF_XET_HIGH_PERFORMANCE"] == "1"
    untuned = attached(workload())
    assert environment(container(untuned, INITIALIZER)) == {}
    assert environment(container(attached(workload(accounts=default), live=untuned), INITIALIZER)) == {}
    assert environment(container(attached(workload(accounts=default), live=tuned), INITIALIZER))


def test_the_accounts_secrets_give_credentials() -> None:
    observed = workload("s3://b/m", accounts={"default": account("default", "keys")})
    with pytest.raises(Needs):
        attached(observed)
    secret = {"metadata": {"name": "keys"}, "data": {"awsSecretAccessKey": "eA==", "awsAccessKeyID": "eQ=="}}
    known = observed_with(observed, answers=answers(observed.namespace, secrets={"keys": secret}))
    assert "AWS_SECRET_ACCESS_KEY" in environment(container(attached(known), INITIALIZER))
    gone = observed_with(observed, answers=answers(observed.namespace, secrets={"keys": None}))
    with pytest.raises(Refused, match='secrets "keys" not found'):
        attached(gone)


def test_downloads_from_s3_trust_the_administrators_certificates() -> None:
    for uri, trusted in (("s3://b/m", True), ("hf://a/b", False)):
        observed = configured(workload(uri), ca_bundle_config_map_name="house", ca_bundle_volume_mount_path="/ca")
        env = environment(container(attached(observed), INITIALIZER))
        assert (env.get("CA_BUNDLE_CONFIGMAP_NAME") == "global-ca-bundle") is trusted


def test_a_tokenizer_downloads_its_own_files_to_its_own_path() -> None:
    pod = attached(workload(accounts={"default": account("default")}), path="/models/base", tokenizer_only=True)
    assert "tokenizer.json" in environment(container(pod, INITIALIZER))["STORAGE_ALLOW_PATTERNS"]
    assert container(pod)["volumeMounts"][0]["mountPath"] == "/models/base"


@pytest.mark.parametrize("adapters", [[], [{"name": "sql", "uri": "hf://a/sql"}]])
def test_an_encrypted_model_is_decrypted_also_beside_adapters(adapters: list[Object]) -> None:
    model = {"confidential": {"enabled": True, "resourceId": "kbs:///a/b/c"}, "lora": {"adapters": adapters}}
    observed = workload(model=model)
    initializer = container(attached(observed, adapters=resolve_adapters(observed.spec)), INITIALIZER)
    assert len(initializer["args"]) == 2 + 2 * len(adapters)
    assert environment(initializer) == {
        "CONFIDENTIAL_ENABLED": "true",
        "CONFIDENTIAL_RESOURCE_ID": "kbs:///a/b/c",
    }
