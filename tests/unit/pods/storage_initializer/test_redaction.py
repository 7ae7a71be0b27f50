"""No secret of an address or of the environment in anything that the program writes, whatever the storage."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.growth import assert_grows_as_its_input
from tests.unit.pods.storage_initializer.sites import Answer, Site, site

from isvc.pods.storage_initializer.redaction import Redaction
from isvc.storage_schemes import SCHEMES

SECRET = "Tr0ub4dor-3"
SAS = f"sv=1&sig={SECRET}"
USER = f"me:{SECRET}@"
SOURCES = {
    "local": [f"file:///nowhere/{'{host}'}?{SAS}", f"pvc://claim/model?{SAS}"],
    "gcs": [f"gs://{USER}b/iris?{SAS}"],
    "s3": [f"s3://{USER}b/iris?{SAS}"],
    "webhdfs": [f"hdfs://{USER}models/iris?{SAS}"],
    "huggingface": [f"hf://{USER}org/iris?{SAS}", f"hf://org/iris:{'{host}'}"],
    "modelscope": [f"modelscope://{USER}org/iris?{SAS}", "modelscope://org/iris:v1"],
    "git": [f"http://{USER}{'{host}'}/org/model.git", "http://{host}/redirected/model.git"],
    "oci": [f"oci://{USER}{'{host}'}/org/model?{SAS}", "oci://{host}/org/model:v1"],
    "azure_blob": [f"https://account.blob.core.windows.net/models/iris?{SAS}"],
    "azure_file": [f"https://account.file.core.windows.net/models/iris?{SAS}"],
    "http": [f"http://{USER}{'{host}'}/model.bin?{SAS}", f"http://{'{host}'}/redirected?{SAS}"],
    "unknown": [f"ftp://{USER}h/model?{SAS}"],
}


def test_every_scheme_is_here() -> None:
    assert set(SOURCES) == {scheme.module for scheme in SCHEMES if scheme.module} | {"unknown"}


@pytest.fixture
def store() -> Iterator[Site]:
    """Refuses everything and repeats what it was asked, or sends clients elsewhere with a signature."""

    def refuse(answer: Answer) -> bool:
        moved = answer.path.startswith("/redirected")
        body = f"not {answer.path}".encode()
        answer.send_response(302 if moved else 403, None if moved else f"Forbidden {answer.path}")
        if moved:
            answer.send_header("Location", f"http://127.0.0.1:9/elsewhere?X-Amz-Signature={SECRET}")
        answer.send_header("Content-Length", str(len(body)))
        answer.end_headers()
        answer.wfile.write(body)
        return True

    with site() as made:
        made.spoil = refuse
        yield made


@pytest.mark.parametrize("source", [source for sources in SOURCES.values() for source in sources])
def test_all_output(store: Site, tmp_path: Path, source: str) -> None:
    message, secrets = tmp_path / "termination-log", tmp_path / "hdfs"
    secrets.mkdir()
    (secrets / "HDFS_NAMENODE").write_text(store.address)
    (secrets / "HDFS_DELEGATION_TOKEN").write_text(SECRET)
    host = store.address.removeprefix("http://")
    login = tmp_path / "config.json"
    login.write_text(json.dumps({"auths": {host: {"username": "me", "password": SECRET}}}))
    environment = {
        "PATH": os.environ["PATH"],
        "TERMINATION_MESSAGE_PATH": str(message),
        "STORAGE_EMULATOR_HOST": store.address,
        "AWS_ENDPOINT_URL": store.address,
        "AWS_ACCESS_KEY_ID": "me",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AZURE_SERVICE_URL": store.address,
        "HDFS_SECRET_DIR": str(secrets),
        "HF_ENDPOINT": store.address,
        "HF_TOKEN": SECRET,
        "MODELSCOPE_ENDPOINT": store.address,
        "MODELSCOPE_API_TOKEN": SECRET,
        "GIT_PASSWORD": SECRET,
        "KSERVE_OCI_INSECURE_REGISTRY": "true",
        "KSERVE_OCI_DOCKER_CONFIG": str(login),
    }
    program = [sys.executable, "-m", "isvc.pods.storage_initializer", source.format(host=host), str(tmp_path / "model")]
    ended = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=120)
    assert ended.returncode not in (0, 2)
    assert "bringing" in ended.stdout
    written = ended.stdout + ended.stderr + message.read_text()
    assert SECRET not in written


def test_a_header_that_python_refuses(tmp_path: Path) -> None:
    """http.client quotes a value with a line break in its error."""
    environment = {"PATH": os.environ["PATH"], "127.0.0.1-headers": json.dumps({"Authorization": f"{SECRET}\nmore"})}
    program = [sys.executable, "-m", "isvc.pods.storage_initializer", "http://127.0.0.1:9/m", str(tmp_path / "model")]
    ended = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert SECRET not in ended.stderr


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://me:pw@h/a/b.bin?sig=x#y: 403", "https://***@h/a/b.bin?*** 403"),
        ("s3://bucket/key: there is no object", "s3://bucket/key: there is no object"),
        ("GET /model.bin?sig=abc HTTP/1.1", "GET /model.bin?*** HTTP/1.1"),
        ("('http://h/x?sig=abc', 'http://h/y')", "('http://h/x?***', 'http://h/y')"),
        ("is that right? yes", "is that right? yes"),
        ("the key abcdef123 and abcdef123", "the key *** and ***"),
    ],
)
def test_text(text: str, shown: str) -> None:
    assert Redaction(["abcdef123", "yes"])(text) == shown


def test_what_looks_like_schemes_takes_no_longer_than_other_text() -> None:
    def redact(size: int) -> None:
        text = "a." * size
        assert Redaction()(f"{text} {text}https://me:{SECRET}@host/?{SAS}") == f"{text} {text}https://***@host/?***"

    assert_grows_as_its_input(redact, 1_000)


@pytest.mark.parametrize("before", ["", "-", "_", "1", ".", "=", "ü", "git+"])
def test_whatever_stands_before_an_address(before: str) -> None:
    assert SECRET not in Redaction()(f"{before}https://me:{SECRET}@host/?{SAS}")
