"""Downloads from a server that speaks S3."""

from __future__ import annotations

import http.client
from pathlib import Path
from typing import Any

import pytest
from tests.unit.pods.storage_initializer.files import contents
from tests.unit.pods.storage_initializer.sites import Answer, site

from isvc.pods.storage_initializer.program import run
from isvc.pods.storage_initializer.remote import Body
from isvc.pods.storage_initializer.schemes import s3
from isvc.pods.stores.errors import StorageError
from isvc.pods.stores.s3 import _config, _verify
from isvc.pods.stores.s3 import client as store_client
from isvc.pods.stores.settings import Settings

KEYS = {"AWS_ACCESS_KEY_ID": "user", "AWS_SECRET_ACCESS_KEY": "password", "AWS_DEFAULT_REGION": "us-east-1"}
PARTS = bytes(range(256)) * 24_000  # over the 5 MiB that a part has at least


@pytest.fixture(scope="module")
def store(s3_endpoint: str) -> Any:
    import boto3

    client = boto3.client(
        "s3",
        endpoint_url=s3_endpoint,
        aws_access_key_id="user",
        aws_secret_access_key="password",
        region_name="us-east-1",
    )
    client.create_bucket(Bucket="models")
    for key, content in {
        "iris/model.joblib": b"weights",
        "iris/config/settings.json": b"{}",
        "iris/empty.txt": b"",
        "iris-v2/model.joblib": b"other",
        "single.bin": PARTS,
    }.items():
        client.put_object(Bucket="models", Key=key, Body=content)
    client.put_object(Bucket="models", Key="iris/folder/", Body=b"")
    upload = client.create_multipart_upload(Bucket="models", Key="parts/model.bin")["UploadId"]
    target = {"Bucket": "models", "Key": "parts/model.bin", "UploadId": upload}
    pieces = [PARTS, b"the end"]
    tags = [client.upload_part(**target, PartNumber=n, Body=p)["ETag"] for n, p in enumerate(pieces, 1)]
    listed = [{"PartNumber": number, "ETag": tag} for number, tag in enumerate(tags, 1)]
    client.complete_multipart_upload(**target, MultipartUpload={"Parts": listed})
    return client


def bring(uri: str, dest: Path, s3_endpoint: str, **environment: str) -> tuple[int, str]:
    message = dest.parent / "termination-log"
    variables = {"TERMINATION_MESSAGE_PATH": str(message), "AWS_ENDPOINT_URL": s3_endpoint, **KEYS, **environment}
    status = run([uri, str(dest)], variables)
    return status, message.read_text() if message.exists() else ""


@pytest.mark.parametrize("uri", ["s3://models/iris", "s3://models/iris/"])
def test_a_folder(store: Any, s3_endpoint: str, tmp_path: Path, uri: str) -> None:
    assert bring(uri, tmp_path / "model", s3_endpoint) == (0, "")
    expected = {"model.joblib": b"weights", "config/settings.json": b"{}", "empty.txt": b""}
    assert contents(tmp_path / "model") == expected


def test_keys_that_would_be_one_file_are_refused(store: Any, s3_endpoint: str, tmp_path: Path) -> None:
    for key in ("twice/a/model.bin", "twice/a//model.bin"):
        store.put_object(Bucket="models", Key=key, Body=key.encode())
    status, message = bring("s3://models/twice", tmp_path / "model", s3_endpoint)
    assert (status, (tmp_path / "model").exists()) == (6, False)
    assert "'a/model.bin'" in message


def test_one_object(store: Any, s3_endpoint: str, tmp_path: Path) -> None:
    assert bring("s3://models/single.bin", tmp_path / "model", s3_endpoint) == (0, "")
    assert contents(tmp_path / "model") == {"single.bin": PARTS}


def test_an_object_of_several_parts_has_no_checksum_but_a_length(store: Any, s3_endpoint: str, tmp_path: Path) -> None:
    assert bring("s3://models/parts", tmp_path / "model", s3_endpoint) == (0, "")
    assert contents(tmp_path / "model") == {"model.bin": PARTS + b"the end"}


def test_patterns_choose_files(store: Any, s3_endpoint: str, tmp_path: Path) -> None:
    chosen = {"STORAGE_ALLOW_PATTERNS": '["*.json", "*.joblib"]', "STORAGE_IGNORE_PATTERNS": "config/*"}
    assert bring("s3://models/iris", tmp_path / "model", s3_endpoint, **chosen)[0] == 0
    assert contents(tmp_path / "model") == {"model.joblib": b"weights"}


def test_the_storage_config_secret(store: Any, s3_endpoint: str, tmp_path: Path) -> None:
    secret = f'{{"type": "s3", "endpoint_url": "{s3_endpoint}", "access_key_id": "user", "secret_access_key": "x"}}'
    variables = {"STORAGE_CONFIG": secret, "STORAGE_OVERRIDE_CONFIG": '{"region": "us-east-1"}'}
    assert run(["s3://models/iris", str(tmp_path / "model")], variables) == 0
    assert "model.joblib" in contents(tmp_path / "model")


@pytest.mark.parametrize("uri", ["s3://models/nothing", "s3://no-bucket/iris"])
def test_nothing_there(store: Any, s3_endpoint: str, tmp_path: Path, uri: str) -> None:
    status, message = bring(uri, tmp_path / "model", s3_endpoint)
    assert status == 3
    assert uri in message
    assert not (tmp_path / "model").exists()


def test_no_server(tmp_path: Path) -> None:
    quick = {"S3_MAX_ATTEMPTS": "1", "S3_CONNECT_TIMEOUT": "2"}
    status, message = bring("s3://models/iris", tmp_path / "model", "http://127.0.0.1:9", **quick)
    assert status == 5
    assert "s3://models/iris" in message


def test_goes_on_where_the_connection_broke(store: Any, s3_endpoint: str, tmp_path: Path) -> None:
    """Between us and the store is one that breaks the first download of an object."""

    def forward(answer: Answer) -> bool:
        upstream = http.client.HTTPConnection(s3_endpoint.removeprefix("http://"))
        upstream.request("GET", answer.path, headers=dict(answer.headers))
        response = upstream.getresponse()
        content = response.read()
        downloads = [path for path, _ in between.requests if path.startswith("/models/single.bin")]
        answer.send_response(response.status)
        for name, value in response.headers.items():
            answer.send_header(name, value)
        answer.end_headers()
        answer.wfile.write(content[:2_500_000] if len(downloads) == 1 else content)
        answer.close_connection = True
        return True

    with site() as between:
        between.spoil = forward
        assert bring("s3://models/single.bin", tmp_path / "model", between.address) == (0, "")
    ranges = [headers.get("range") for path, headers in between.requests if path.startswith("/models/single.bin")]
    assert ranges == [None, "bytes=2500000-"]
    assert contents(tmp_path / "model") == {"single.bin": PARTS}


def test_reads_from_an_offset(store: Any, s3_endpoint: str) -> None:
    settings = Settings.read({**KEYS, "AWS_ENDPOINT_URL": s3_endpoint})
    client = store_client(settings)
    found = next(s3._objects(client, "models", "single.bin"))
    with s3._open(client, "models", found, len(PARTS) - 3, None, "") as body:
        assert isinstance(body, Body)
        assert b"".join(body.chunks) == PARTS[-3:]


def test_tls_settings(tmp_path: Path) -> None:
    assert _verify(Settings.read({})) is True
    assert _verify(Settings.read({"S3_VERIFY_SSL": "0"})) is False
    bundle = tmp_path / "cabundle.crt"
    bundle.write_text("certificates")
    mounted = {"CA_BUNDLE_CONFIGMAP_NAME": "roots", "CA_BUNDLE_VOLUME_MOUNT_POINT": str(tmp_path)}
    assert _verify(Settings.read(mounted)) == str(bundle)
    with pytest.raises(StorageError, match="do not exist"):
        _verify(Settings.read({"AWS_CA_BUNDLE": "/nowhere.crt"}))


def test_client_settings() -> None:
    config = _config(Settings.read({"S3_USER_VIRTUAL_BUCKET": "true", "S3_USE_ACCELERATE": "true"}))
    assert config.s3 == {"addressing_style": "virtual", "use_accelerate_endpoint": True}
    legacy = {"AWS_ENDPOINT_URL": "https://s3.amazonaws.com", "AWS_DEFAULT_REGION": "eu-west-1"}
    assert _config(Settings.read(legacy)).s3 == {"addressing_style": "virtual"}


def test_without_credentials_nobody_is_said_to_have_refused(tmp_path: Path, s3_endpoint: str) -> None:
    nothing = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_EC2_METADATA_DISABLED": "true"}
    status, said = bring("s3://models/iris", tmp_path / "model", s3_endpoint, **nothing)
    assert status == 4
    assert "no credentials were given, so that nobody was asked" in said
