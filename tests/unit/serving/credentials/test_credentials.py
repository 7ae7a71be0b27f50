"""What secrets and service accounts give a download."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from tests.answers import lookup

from isvc.engine.needs import Needs, Stored
from isvc.kube.objects import Object
from isvc.kube.resource import SECRETS, SERVICE_ACCOUNTS
from isvc.serving.config.sections import CredentialsConfig, GCSConfig, S3Config
from isvc.serving.credentials import (
    Lookup,
    add_service_account_credentials,
    add_storage_spec_credentials,
)
from isvc.serving.credentials.secrets import grant_of
from isvc.serving.refused import Refused

PLAIN = CredentialsConfig(storage_secret_name_annotation="serving.kserve.io/storageSecretName")


def secret(name: str, annotations: dict[str, str] | None = None, **data: str) -> Object:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return {"metadata": {"name": name, "annotations": annotations or {}}, "data": encoded}


def account(*secrets: str, annotations: dict[str, str] | None = None) -> Object:
    return {"metadata": {"name": "sa", "annotations": annotations or {}}, "secrets": [{"name": n} for n in secrets]}


def granted(
    account: Object | None,
    secrets: dict[str, Object | None],
    annotations: dict[str, str] | None = None,
    config: CredentialsConfig = PLAIN,
) -> tuple[Object, Object]:
    container: Object = {"name": "c"}
    spec: Object = {}
    add_service_account_credentials(
        container, spec, "sa", annotations or {}, config, lookup("ns", {"sa": account}, secrets)
    )
    return container, spec


def env_of(container: Object) -> dict[str, Any]:
    """Variables by name: a plain value, or (secret, key)."""
    found = {}
    for entry in container.get("env", ()):
        ref = entry.get("valueFrom", {}).get("secretKeyRef")
        found[entry["name"]] = (ref["name"], ref["key"]) if ref else entry.get("value", "")
    return found


def test_s3_settings_come_from_annotations_then_data_then_config() -> None:
    config = CredentialsConfig(s3=S3Config(s3_region="from-config", s3_endpoint="config:9000", s3_verify_ssl="0"))
    keys = secret(
        "keys",
        {"serving.kserve.io/s3-region": "annotated", "serving.kserve.io/s3-usehttps": "0"},
        awsAccessKeyID="a",
        awsSecretAccessKey="b",
        AWS_DEFAULT_REGION="stored",
        S3_ENDPOINT="stored:9000",
    )
    container, _ = granted(account("keys"), {"keys": keys}, config=config)
    assert env_of(container) == {
        "AWS_ACCESS_KEY_ID": ("keys", "awsAccessKeyID"),
        "AWS_SECRET_ACCESS_KEY": ("keys", "awsSecretAccessKey"),
        "S3_USE_HTTPS": "0",
        "S3_ENDPOINT": "stored:9000",
        "AWS_ENDPOINT_URL": "http://stored:9000",
        "S3_VERIFY_SSL": "0",
        "AWS_DEFAULT_REGION": "annotated",
    }


@pytest.mark.parametrize(
    ("endpoint", "use_https", "expected"),
    [
        ("https://s", "0", {"S3_USE_HTTPS": "1", "S3_ENDPOINT": "s", "AWS_ENDPOINT_URL": "https://s"}),
        (" HTTP://s ", "1", {"S3_USE_HTTPS": "0", "S3_ENDPOINT": "s", "AWS_ENDPOINT_URL": "HTTP://s"}),
        ("s", "", {"S3_ENDPOINT": "s", "AWS_ENDPOINT_URL": "https://s"}),
        ("s", "1", {"S3_USE_HTTPS": "1", "S3_ENDPOINT": "s", "AWS_ENDPOINT_URL": "https://s"}),
        ("", "1", {}),
    ],
)
def test_s3_endpoints(endpoint: str, use_https: str, expected: dict[str, str]) -> None:
    config = CredentialsConfig(s3=S3Config(s3_endpoint=endpoint, s3_use_https=use_https))
    role = account(annotations={"eks.amazonaws.com/role-arn": "arn"})
    assert env_of(granted(role, {}, config=config)[0]) == expected


def test_a_second_s3_secret_changes_plain_values_only() -> None:
    first = secret("first", awsSecretAccessKey="x", AWS_DEFAULT_REGION="one")
    second = secret("second", awsSecretAccessKey="x", AWS_DEFAULT_REGION="two", S3_VERIFY_SSL="0")
    container, _ = granted(account("first", "second"), {"first": first, "second": second})
    assert env_of(container) == {
        "AWS_ACCESS_KEY_ID": ("first", "awsAccessKeyID"),
        "AWS_SECRET_ACCESS_KEY": ("first", "awsSecretAccessKey"),
        "AWS_DEFAULT_REGION": "two",
        "S3_VERIFY_SSL": "0",
    }


def test_google_keys_are_mounted() -> None:
    config = CredentialsConfig(gcs=GCSConfig(gcs_credential_file_name="key.json"))
    container, spec = granted(
        account("google"), {"google": secret("google", None, **{"key.json": "{}"})}, config=config
    )
    assert env_of(container) == {"GOOGLE_APPLICATION_CREDENTIALS": "/var/secrets/key.json"}
    assert container["volumeMounts"] == [{"name": "user-gcp-sa", "mountPath": "/var/secrets/", "readOnly": True}]
    assert spec["volumes"] == [{"name": "user-gcp-sa", "secret": {"secretName": "google"}}]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"HF_TOKEN": "t"}, {"HF_TOKEN": ("s", "HF_TOKEN")}),
        ({"GIT_PASSWORD": "p"}, {"GIT_PASSWORD": ("s", "GIT_PASSWORD")}),
        ({"MODELSCOPE_API_TOKEN": "t"}, {"MODELSCOPE_API_TOKEN": ("s", "MODELSCOPE_API_TOKEN")}),
        ({"AZURE_STORAGE_ACCESS_KEY": "k"}, {"AZURE_STORAGE_ACCESS_KEY": ("s", "AZURE_STORAGE_ACCESS_KEY")}),
        (
            {"AZ_CLIENT_ID": "c", "AZ_CLIENT_SECRET": "s"},
            {
                "AZURE_TENANT_ID": ("s", "AZURE_TENANT_ID"),
                "AZURE_CLIENT_ID": ("s", "AZ_CLIENT_ID"),
                "AZURE_CLIENT_SECRET": ("s", "AZ_CLIENT_SECRET"),
            },
        ),
        (
            {"AZURE_ACCESS_TOKEN": "t", "AZURE_ACCOUNT_NAME": "a"},
            {
                "AZURE_TENANT_ID": ("s", "AZURE_TENANT_ID"),
                "AZURE_ACCESS_TOKEN": ("s", "AZURE_ACCESS_TOKEN"),
                "AZURE_ACCOUNT_NAME": ("s", "AZURE_ACCOUNT_NAME"),
            },
        ),
        ({"https-host": "files.example", "headers": "a: b"}, {"files.example-headers": "a: b"}),
        ({"https-host": "files.example"}, {}),
        ({".dockerconfigjson": "{}"}, {}),
    ],
)
def test_kinds_of_secrets(data: dict[str, str], expected: dict[str, Any]) -> None:
    assert env_of({"env": grant_of(secret("s", None, **data), PLAIN).env}) == expected


def test_hdfs_secrets_are_mounted() -> None:
    container, spec = granted(account("h"), {"h": secret("h", HDFS_NAMENODE="n")})
    assert container["volumeMounts"][0]["mountPath"] == "/var/secrets/kserve-hdfscreds"
    assert spec["volumes"] == [{"name": "hdfs-secrets", "secret": {"secretName": "h"}}]


def test_the_secret_that_a_pod_names_replaces_those_of_its_account() -> None:
    named = {"serving.kserve.io/storageSecretName": "mine"}
    container, _ = granted(account("other"), {"mine": secret("mine", HF_TOKEN="t")}, named)
    assert env_of(container) == {"HF_TOKEN": ("mine", "HF_TOKEN")}


def test_a_missing_account_gives_nothing_and_a_missing_secret_refuses() -> None:
    assert granted(None, {}) == ({"name": "c"}, {})
    with pytest.raises(Refused, match=r'secret "gone", which service account "sa" names, does not exist in .*"ns"'):
        granted(account("gone"), {"gone": None})


def test_what_is_not_known_is_asked_for_together() -> None:
    with pytest.raises(Needs) as asked:
        add_service_account_credentials({}, {}, "", {}, PLAIN, Lookup("ns"))
    assert asked.value.needs == (Stored(SERVICE_ACCOUNTS, "default", "ns"),)
    with pytest.raises(Needs) as asked:
        granted(account("a", "b", "a", "known"), {"known": secret("known")})
    assert asked.value.needs == (Stored(SECRETS, "a", "ns"), Stored(SECRETS, "b", "ns"))


def specified(
    key: str, parameters: dict[str, str], stored: Object | None, uri: str = "<scheme-placeholder>://path/m"
) -> Object:
    container: Object = {"args": [uri, "/mnt/models"]}
    add_storage_spec_credentials(container, key, parameters, {}, PLAIN, lookup("ns", {}, {"storage-config": stored}))
    return container


def test_an_entry_of_the_storage_secret() -> None:
    stored = secret("storage-config", mine='{"type": "s3", "bucket": "b", "cabundle_configmap": "roots"}')
    container = specified("mine", {}, stored)
    assert container["args"] == ["s3://b/path/m", "/mnt/models"]
    assert env_of(container) == {
        "AWS_CA_BUNDLE_CONFIGMAP": "roots",
        "STORAGE_CONFIG": ("storage-config", "mine"),
    }


def test_parameters_override_and_are_written_as_go_writes_them() -> None:
    stored = secret("storage-config", default_s3="not even JSON")
    container = specified("", {"type": "s3", "bucket": "b", "note": "<&>"}, stored)
    assert container["args"][0] == "s3://b/path/m"
    assert env_of(container) == {
        "STORAGE_CONFIG": ("storage-config", "default_s3"),
        "STORAGE_OVERRIDE_CONFIG": '{"bucket":"b","note":"\\u003c\\u0026\\u003e","type":"s3"}',
    }


def test_parameters_are_enough_without_a_secret() -> None:
    container = specified("", {"type": "hdfs"}, None)
    assert container["args"][0] == "hdfs://path/m"
    assert list(env_of(container)) == ["STORAGE_OVERRIDE_CONFIG"]


def test_a_full_uri_is_left_alone() -> None:
    assert specified("", {"type": "s3"}, None, uri="s3://b/m")["args"][0] == "s3://b/m"


@pytest.mark.parametrize(
    ("key", "parameters", "stored", "problem"),
    [
        ("mine", {}, None, 'storage secret "storage-config" does not exist in namespace "ns"'),
        ("mine", {}, secret("storage-config"), 'storage key "mine" is not in storage secret "storage-config"'),
        ("mine", {}, secret("storage-config", mine="["), "not a JSON map"),
        ("mine", {}, secret("storage-config", mine='{"type": 1}'), "not a JSON map of strings"),
        ("mine", {}, secret("storage-config", mine='{"type": "ftp"}'), 'must be one of s3, hdfs, webhdfs, not "ftp"'),
        ("mine", {}, secret("storage-config", mine="{}"), "cannot tell the storage type"),
        ("", {}, None, "cannot tell the storage type"),
        ("mine", {}, secret("storage-config", mine='{"type": "s3"}'), "needs a bucket"),
    ],
)
def test_storage_specs_that_cannot_work(
    key: str, parameters: dict[str, str], stored: Object | None, problem: str
) -> None:
    with pytest.raises(Refused, match=problem):
        specified(key, parameters, stored)
