"""Confidential models, encrypted with the library that KServe names for it: decrypted, or not there at all."""

from __future__ import annotations

import base64
import io
import os
import tarfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jwcrypto import jwe, jwk
from tests.unit.pods.storage_initializer.files import contents
from tests.unit.pods.storage_initializer.sites import Site, site

from isvc.pods.storage_initializer import confidential
from isvc.pods.storage_initializer.program import run

KEY = bytes(range(160, 192))  # no text
RESOURCE = "kbs:///default/key/model"
MODEL = b"weights" * 1000


def _jwk(key: bytes = KEY) -> Any:
    return jwk.JWK(kty="oct", k=base64.urlsafe_b64encode(key).rstrip(b"=").decode())


def encrypted(content: bytes, alg: str = "A256KW", enc: str = "A256GCM", key: Any = None) -> str:
    token = jwe.JWE(content, protected={"alg": alg, "enc": enc})
    token.add_recipient(key or _jwk())
    text: str = token.serialize(compact=True)
    return text


@pytest.fixture
def hub() -> Iterator[Site]:
    """The Confidential Data Hub of the container."""
    with site() as made:
        made.files["/cdh/resource/default/key/model"] = KEY
        yield made


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    return folder


def bring(source: Path, hub: Site, **environment: str) -> tuple[int, str]:
    message = source.parent / "message"
    known = {"CONFIDENTIAL_ENABLED": "true", "CONFIDENTIAL_RESOURCE_ID": RESOURCE, "CDH_ADDR": hub.address}
    variables = {**known, "TERMINATION_MESSAGE_PATH": str(message), **environment}
    status = run([f"file://{source}", str(source.parent / "model")], variables)
    return status, message.read_text() if message.exists() else ""


@pytest.mark.parametrize("alg", ["A256KW", "A256GCMKW", "dir"])
@pytest.mark.parametrize("enc", ["A256GCM", "A128CBC-HS256"])
def test_files_are_decrypted(source: Path, hub: Site, alg: str, enc: str) -> None:
    (source / "model.bin.jwe").write_text(encrypted(MODEL, alg, enc))
    (source / "by-content").write_text(encrypted(b"also", alg, enc) + "\n")
    (source / "config.json").write_text("{}")
    assert bring(source, hub) == (0, "")
    assert contents(source.parent / "model") == {"model.bin": MODEL, "by-content": b"also", "config.json": b"{}"}
    assert (source / "model.bin.jwe").exists()  # the source is somebody else's


@pytest.mark.parametrize("stored", [KEY, base64.urlsafe_b64encode(KEY) + b"\n", _jwk().export().encode()])
def test_forms_of_a_key(source: Path, hub: Site, stored: bytes) -> None:
    hub.files["/cdh/resource/default/key/model"] = stored
    (source / "m.jwe").write_text(encrypted(MODEL))
    assert bring(source, hub) == (0, "")
    assert contents(source.parent / "model") == {"m": MODEL}


def test_an_archive_and_what_is_in_it(source: Path, hub: Site) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        inner = encrypted(MODEL).encode()
        info = tarfile.TarInfo("deep/model.bin.jwe")
        info.size = len(inner)
        tar.addfile(info, io.BytesIO(inner))
    (source / "model.tar.gz.jwe").write_text(encrypted(packed.getvalue()))
    assert bring(source, hub) == (0, "")
    assert contents(source.parent / "model") == {"deep/model.bin": MODEL}


def _flipped(text: str, at: int) -> str:
    return text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :]


@pytest.mark.parametrize(
    "text",
    [
        _flipped(encrypted(MODEL), -200),
        _flipped(encrypted(MODEL), -3),
        _flipped(encrypted(MODEL, enc="A128CBC-HS256"), -200),
        encrypted(MODEL)[:-100],
        encrypted(MODEL, key=_jwk(b"x" * 32)),
        encrypted(MODEL, "dir", key=_jwk(b"x" * 32)),
        "eyJ",
        "eyJhbGciOiJub25lIn0.a.b.c.d",
        base64.urlsafe_b64encode(b'{"alg":"RSA1_5","enc":"A256GCM"}').decode().rstrip("=") + ".YQ.YQ.YQ.YQ",
        "no jwe at all",
    ],
)
def test_what_is_not_authentic_is_no_model(source: Path, hub: Site, text: str) -> None:
    (source / "model.bin.jwe").write_text(text)
    status, message = bring(source, hub)
    assert status == 6
    assert message.startswith("model.bin.jwe cannot be decrypted: ")
    assert not (source.parent / "model").exists()


@pytest.mark.parametrize(
    ("environment", "status", "said"),
    [
        ({"CONFIDENTIAL_RESOURCE_ID": ""}, 1, "does not say with which key"),
        ({"CONFIDENTIAL_RESOURCE_ID": "kbs:///a/../b"}, 1, "kbs:///repository/type/tag"),
        ({"CONFIDENTIAL_RESOURCE_ID": "kbs:///default/key/other"}, 4, "answered 404"),
        ({"CDH_ADDR": "http://127.0.0.1:1"}, 5, "is the pod a confidential container?"),
    ],
)
def test_without_a_key_there_is_no_model(
    source: Path, hub: Site, environment: dict[str, str], status: int, said: str
) -> None:
    (source / "model.bin.jwe").write_text(encrypted(MODEL))
    found, message = bring(source, hub, **environment)
    assert (found, said in message) == (status, True)
    assert not (source.parent / "model").exists()


def test_others_are_left_as_they_are(source: Path, hub: Site) -> None:
    text = encrypted(MODEL)
    (source / "model.bin.jwe").write_text(text)
    assert bring(source, hub, CONFIDENTIAL_ENABLED="false")[0] == 0
    assert contents(source.parent / "model") == {"model.bin.jwe": text.encode()}
    assert hub.requests == []


def test_memory_does_not_grow_with_a_file(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confidential, "_key", lambda settings: _jwk())
    content = os.urandom(30_000_000)
    path = source / "large.jwe"
    path.write_text(encrypted(content))
    tracemalloc.start()
    confidential._decrypt_file(path, _jwk())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (source / "large").read_bytes() == content
    assert peak < 12_000_000
