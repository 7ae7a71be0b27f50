"""How models get into pod specs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import pytest
from tests.answers import lookup

from isvc.kube.objects import Object, deep_copy
from isvc.serving import annotations as names
from isvc.serving.config.sections import CredentialsConfig, StorageInitializerConfig
from isvc.serving.containers import find_container, find_init_container
from isvc.serving.refused import Refused
from isvc.serving.storage import Source, StorageRequest, choose_storage_container, initialize
from isvc.serving.storage.containers import merge_container
from isvc.serving.storage.uris import OciUri, cached_uri, common_parent, folder_of, parent, parse_oci, parse_pvc

CONFIG = StorageInitializerConfig(enable_modelcar=True)
SERVER: Object = {"containers": [{"name": "kserve-container"}]}


def request(*sources: str | tuple[str, str], config: StorageInitializerConfig = CONFIG, **more: Any) -> StorageRequest:
    listed = tuple(Source(source) if isinstance(source, str) else Source(*source) for source in sources)
    known = lookup("ns", {"default": None})
    return StorageRequest(listed, config=config, credentials=CredentialsConfig(), lookup=known, **more)


def mounts(container: Object | None) -> dict[str, Any]:
    assert container is not None
    return {entry["mountPath"]: entry for entry in container.get("volumeMounts", ())}


def both(*containers: str) -> Object:
    return {"containers": [{"name": name} for name in containers]}


def test_one_download() -> None:
    before = deep_copy(SERVER)
    spec = initialize(SERVER, request("s3://b/m", several=False))
    assert before == SERVER
    (downloader,) = spec["initContainers"]
    assert downloader["args"] == ["s3://b/m", "/mnt/models"]
    assert downloader["terminationMessagePolicy"] == "FallbackToLogsOnError"
    volume = {"name": "kserve-provision-location", "mountPath": "/mnt/models"}
    assert downloader["volumeMounts"] == [volume]
    assert spec["containers"][0]["volumeMounts"] == [{**volume, "readOnly": True}]
    assert spec["volumes"] == [{"name": "kserve-provision-location", "emptyDir": {}}]


def test_doing_it_again_changes_nothing() -> None:
    for asked in (
        request("s3://b/m", several=False),
        request("pvc://claim/m", several=False),
        request(("s3://b/m", "/mnt/a"), ("pvc://c", "/mnt/b"), ("oci://h/i", "/mnt/c/d")),
        request(("oci+fetch://h/i", "/mnt/models")),
    ):
        once = initialize(both("kserve-container", "transformer-container"), asked)
        assert initialize(once, asked) == once


def test_the_storage_uri_variable_becomes_the_path() -> None:
    container = {"name": "kserve-container", "env": [{"name": "STORAGE_URI", "value": "s3://b/m"}]}
    spec = initialize({"containers": [container]}, request("s3://b/m", several=False))
    assert spec["containers"][0]["env"] == [{"name": "STORAGE_URI", "value": "/mnt/models"}]


def test_a_claim_is_mounted_not_downloaded() -> None:
    writable = {names.STORAGE_READONLY: "false"}
    asked = request("pvc://claim/a/b", several=False, annotations=writable)
    spec = initialize(both("kserve-container", "transformer-container"), asked)
    assert "initContainers" not in spec
    mounted = [{"name": "kserve-pvc-source", "mountPath": "/mnt/models", "subPath": "a/b"}]
    assert [container["volumeMounts"] for container in spec["containers"]] == [mounted, mounted]
    assert spec["volumes"][0]["persistentVolumeClaim"] == {"claimName": "claim"}


def test_several_sources_share_the_folder_above_them() -> None:
    asked = request(("s3://b/base", "/mnt/models/base"), ("hf://o/m", "/mnt/models/adapters/a"), ("pvc://c/x", "/data"))
    spec = initialize(SERVER, asked)
    downloader = find_init_container(spec, "storage-initializer")
    assert downloader is not None
    assert downloader["args"] == ["s3://b/base", "/mnt/models/base", "hf://o/m", "/mnt/models/adapters/a"]
    assert mounts(downloader) == {"/mnt/models": {"name": "mnt-models", "mountPath": "/mnt/models"}}
    assert list(mounts(spec["containers"][0])) == ["/data", "/mnt/models"]


def test_workers_get_the_model_where_there_is_no_server() -> None:
    spec = initialize(both("worker-container"), request("s3://b/m", several=False))
    assert mounts(spec["containers"][0])
    with pytest.raises(Refused, match="cannot find container"):
        initialize(both("other"), request("s3://b/m", several=False))


def test_the_puller_brings_its_own_models() -> None:
    assert initialize(SERVER, request("s3://b/m", annotations={names.PULLER: "true"})) == SERVER


def test_several_need_a_storage_container_that_can() -> None:
    one_only = {"container": {"name": "simple"}, "supportsMultiModelDownload": False}
    with pytest.raises(Refused, match="simple"):
        initialize(SERVER, request(("s3://b/m", "/a"), storage_container=one_only))


def test_a_storage_container_shapes_the_downloader_but_not_its_defaults() -> None:
    custom = {
        "container": {
            "name": "vault",
            "image": "vault:1",
            "args": ["--all"],
            "env": [{"name": "HF_XET_HIGH_PERFORMANCE", "value": "0"}],
            "resources": {"limits": {"cpu": "4"}},
        }
    }
    spec = initialize(SERVER, request("vault://m", several=False, storage_container=custom))
    (downloader,) = spec["initContainers"]
    assert (downloader["name"], downloader["image"], downloader["args"]) == ("vault", "vault:1", ["--all"])
    assert downloader["resources"]["limits"] == {"cpu": "4", "memory": "1Gi"}
    assert downloader["env"][0] == {"name": "HF_XET_HIGH_PERFORMANCE", "value": "0"}
    assert [entry["name"] for entry in downloader["env"]].count("HF_XET_HIGH_PERFORMANCE") == 1


def test_merging_leaves_one_kind_of_value() -> None:
    reference = {"secretKeyRef": {"name": "s", "key": "k"}}
    base = {"name": "c", "env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": reference}]}
    overlay = {"name": "", "env": [{"name": "A", "valueFrom": reference}, {"name": "B", "value": "2"}]}
    merged = merge_container(base, overlay)
    assert merged["name"] == "c"
    assert {entry["name"]: entry for entry in merged["env"]} == {
        "A": {"name": "A", "valueFrom": reference},
        "B": {"name": "B", "value": "2"},
    }


def test_ca_certificates() -> None:
    config = replace_config(ca_bundle_config_map_name="roots", ca_bundle_volume_mount_path="/certs")
    spec = initialize(SERVER, request("s3://b/m", config=config, several=False))
    (downloader,) = spec["initContainers"]
    env = {entry["name"]: entry.get("value") for entry in downloader["env"]}
    assert env["CA_BUNDLE_CONFIGMAP_NAME"] == "global-ca-bundle"
    assert env["CA_BUNDLE_VOLUME_MOUNT_POINT"] == "/certs"
    assert mounts(downloader)["/certs"] == {"name": "cabundle-cert", "mountPath": "/certs", "readOnly": True}
    own = initialize(SERVER, request("s3://b/m", config=config, several=False, system_namespace="ns"))
    assert own["volumes"][-1] == {"name": "cabundle-cert", "configMap": {"name": "roots"}}


def test_ca_certificates_of_s3_come_first() -> None:
    role = {"metadata": {"name": "default", "annotations": {"eks.amazonaws.com/role-arn": "a"}}}
    role["metadata"]["annotations"] |= {  # type: ignore[operator]
        "serving.kserve.io/s3-cabundle": "/s3/certs/ca.crt",
        "serving.kserve.io/s3-cabundle-configmap": "s3-roots",
    }
    asked = replace(request("s3://b/m", several=False), lookup=lookup("ns", {"default": role}))
    spec = initialize(SERVER, asked)
    assert spec["volumes"][-1] == {"name": "cabundle-cert", "configMap": {"name": "s3-roots"}}
    assert "/s3/certs" in mounts(spec["initContainers"][0])


def test_confidential_models() -> None:
    wanted = {names.CONFIDENTIAL_ENABLED: "true", names.CONFIDENTIAL_RESOURCE_ID: "kbs:///key"}
    spec = initialize(SERVER, request("s3://b/m", several=False, annotations=wanted))
    env = {entry["name"]: entry.get("value") for entry in spec["initContainers"][0]["env"]}
    assert env["CONFIDENTIAL_ENABLED"] == "true"
    assert env["CONFIDENTIAL_RESOURCE_ID"] == "kbs:///key"


def replace_config(**changes: Any) -> StorageInitializerConfig:
    import msgspec

    return msgspec.structs.replace(CONFIG, **changes)


class TestImages:
    def test_modelcars_have_their_own_names_and_folders(self) -> None:
        asked = request(("oci://h/a", "/mnt/one/models"), ("oci+modelcar://h/b:2", "/mnt/two/mod el"))
        spec = initialize(both("kserve-container", "transformer-container"), asked)
        cars = ["modelcar", "modelcar-1"]
        assert [container["name"] for container in spec["containers"][2:]] == cars
        assert [container["name"] for container in spec["initContainers"]] == ["modelcar-init", "modelcar-init-1"]
        assert spec["shareProcessNamespace"] is True
        command = find_container(spec, "modelcar-1")["args"][2]  # type: ignore[index]
        assert command == "mkdir -p /mnt/two && ln -sf /proc/$$$$/root/models '/mnt/two/mod el' && sleep infinity"
        assert list(mounts(spec["containers"][1])) == ["/mnt/one", "/mnt/two"]

    def test_a_modelcars_user(self) -> None:
        spec = initialize(SERVER, request("oci://h/a", config=replace_config(uid_modelcar=1010)))
        contexts = [container.get("securityContext") for container in spec["containers"]]
        assert contexts == [{"runAsUser": 1010}, {"runAsUser": 1010}]

    def test_an_image_volume(self) -> None:
        spec = initialize(SERVER, request("oci+native://h/a:1"))
        assert spec["volumes"] == [
            {"name": "mnt-models", "image": {"reference": "h/a:1", "pullPolicy": "IfNotPresent"}}
        ]
        assert mounts(spec["containers"][0])["/mnt/models"]["subPath"] == "models"

    def test_an_image_volume_does_not_hide_another_mount(self) -> None:
        taken = [{"name": "other", "mountPath": "/mnt/models"}]
        with pytest.raises(Refused, match="already used"):
            initialize(
                {"containers": [{"name": "kserve-container", "volumeMounts": taken}]}, request("oci+native://h/a")
            )

    def test_fetched_images(self) -> None:
        config = replace_config(oci_model_mode="fetch", oci_insecure_registry=True)
        asked = request(("oci://h/a", "/mnt/a"), ("oci://h/b", "/data/b"), config=config)
        spec = initialize({**SERVER, "imagePullSecrets": [{"name": "pull"}, {"name": "more"}]}, asked)
        (downloader,) = spec["initContainers"]
        assert downloader["args"] == ["oci://h/a", "/mnt/a", "oci://h/b", "/data/b"]
        assert spec["volumes"][0]["secret"]["secretName"] == "pull"
        assert {entry["name"] for entry in downloader["env"]} == {
            "KSERVE_OCI_DOCKER_CONFIG",
            "KSERVE_OCI_INSECURE_REGISTRY",
        }
        assert list(mounts(spec["containers"][0])) == ["/mnt/a", "/data/b"]

    @pytest.mark.parametrize(
        ("mode", "paths", "problem"),
        [
            ("modelcar", ["/mnt/a", "/mnt/b"], "/mnt"),
            ("native", ["/mnt/a", "/mnt/a"], "/mnt/a"),
            ("native", [f"/mnt/{n}" for n in range(11)], "too many"),
        ],
    )
    def test_images_that_would_hide_each_other(self, mode: str, paths: list[str], problem: str) -> None:
        asked = request(
            *((f"oci://h/{n}", path) for n, path in enumerate(paths)), config=replace_config(oci_model_mode=mode)
        )
        with pytest.raises(Refused, match=problem):
            initialize(SERVER, asked)

    def test_images_when_they_are_switched_off(self) -> None:
        off = StorageInitializerConfig()
        spec = initialize(SERVER, request("oci://h/a", config=off, several=False))
        assert spec["initContainers"][0]["args"] == ["oci://h/a", "/mnt/models"]
        assert initialize(SERVER, request("oci+native://h/a", config=off, several=False)) == SERVER


class TestStorageContainers:
    S3: ClassVar[Object] = {"metadata": {"name": "b"}, "spec": {"supportedUriFormats": [{"prefix": "s3://"}]}}
    ALL: ClassVar[Object] = {"metadata": {"name": "c"}, "spec": {"supportedUriFormats": [{"regex": "^[a-z]+://"}]}}
    JOB: ClassVar[Object] = {"metadata": {"name": "a"}, "spec": {**S3["spec"], "workloadType": "localModelDownloadJob"}}

    def test_the_first_by_name_that_supports_the_uri(self) -> None:
        known = [self.ALL, self.S3, self.JOB]
        assert choose_storage_container("s3://m", known) == self.S3["spec"]
        assert choose_storage_container("gs://m", known) == self.ALL["spec"]
        assert choose_storage_container("s3://m", [{**self.S3, "disabled": True}]) is None

    @pytest.mark.parametrize(
        ("name", "uri", "problem"),
        [
            ("gone", "s3://m", "not found"),
            ("a", "s3://m", 'has workloadType "localModelDownloadJob"'),
            ("b", "gs://m", 'does not support storageUri "gs://m"'),
            ("off", "s3://m", "is disabled"),
        ],
    )
    def test_a_name_has_to_fit(self, name: str, uri: str, problem: str) -> None:
        off = {**self.S3, "metadata": {"name": "off"}, "disabled": True}
        with pytest.raises(Refused, match=problem):
            choose_storage_container(uri, [self.S3, self.JOB, off], name)

    def test_a_bad_expression_says_where(self) -> None:
        slow = {"metadata": {"name": "slow"}, "spec": {"supportedUriFormats": [{"regex": "^(a+)+$"}]}}
        assert choose_storage_container("a" * 100 + "!", [slow]) is None
        bad = {"metadata": {"name": "bad"}, "spec": {"supportedUriFormats": [{"regex": "("}]}}
        with pytest.raises(Refused, match='"bad"'):
            choose_storage_container("s3://m", [bad])


class TestUris:
    @pytest.mark.parametrize(
        ("uri", "expected"),
        [
            ("oci://h/i:t", OciUri("", "oci://h/i:t")),
            ("oci+native://h/i:t", OciUri("native", "oci://h/i:t")),
            ("oci+://h/i", None),
            ("s3://h/i", None),
        ],
    )
    def test_images(self, uri: str, expected: OciUri | None) -> None:
        assert parse_oci(uri) == expected

    def test_claims(self) -> None:
        assert parse_pvc("pvc://claim") == ("claim", "")
        assert parse_pvc("pvc://claim/a/b/") == ("claim", "a/b/")

    def test_caches(self) -> None:
        assert cached_uri("gs://w/bert/sub", "gs://w/bert", "c") == "pvc://c/models/9786aa214e938498/sub"
        assert cached_uri("gs://w/bert", "gs://w/bert", "c").endswith("/")

    @pytest.mark.parametrize(
        ("paths", "expected"),
        [
            (["/mnt/models"], "/mnt/models"),
            (["/mnt/models/a", "/mnt/models/b"], "/mnt/models"),
            (["/mnt/models", "/mnt/models/b"], "/mnt/models"),
            (["/a", "/b"], "/"),
            (["/", "/b"], "/"),
        ],
    )
    def test_common_parents(self, paths: list[str], expected: str) -> None:
        assert common_parent(paths) == expected

    def test_parents(self) -> None:
        assert [parent(path) for path in ("/mnt/models", "/models", "models", "/a//b/")] == ["/mnt", "/", "/", "/a/b"]
        assert [folder_of(path) for path in ("/certs/ca.crt", "ca.crt", "//a/b")] == ["/certs", ".", "/a"]
