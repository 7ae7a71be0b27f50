"""Google's, Azure's and Hugging Face's client libraries against small servers that speak their protocols."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from tests.unit.pods.storage_initializer.files import contents
from tests.unit.pods.storage_initializer.sites import Answer, Site, site

from isvc.pods.storage_initializer import progress
from isvc.pods.storage_initializer.program import run
from isvc.pods.storage_initializer.remote import HubModel
from isvc.pods.storage_initializer.schemes import fetch, gcs
from isvc.pods.stores.settings import Settings

WEIGHTS = bytes(range(256)) * 5000
FILES = {"iris/model.bin": WEIGHTS, "iris/deep/config.json": b"{}", "iris-v2/model.bin": b"other"}
MODEL = {"model.bin": WEIGHTS, "deep/config.json": b"{}"}


@pytest.fixture
def server() -> Iterator[Site]:
    with site() as made:
        yield made


def query_of(answer: Answer) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(answer.path).query).items()}


class TestGoogle:
    @pytest.fixture(autouse=True)
    def emulated(self, server: Site, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.address)
        server.spoil = self.answer

    def resource(self, name: str, content: bytes) -> dict[str, Any]:
        md5 = base64.b64encode(hashlib.md5(content).digest()).decode()
        return {"name": name, "bucket": "b", "size": str(len(content)), "md5Hash": md5, "generation": "1"}

    def answer(self, answer: Answer) -> bool:
        path, query = urlsplit(answer.path).path, query_of(answer)
        found = re.fullmatch(r"(/download)?/storage/v1/b/b/o(?:/(.+))?", path)
        name = unquote(found[2] or "") if found else ""
        if found and not name:
            prefix = query.get("prefix", "")
            items = [self.resource(key, content) for key, content in FILES.items() if key.startswith(prefix)]
            answer.give(json.dumps({"items": items}).encode())
        elif name not in FILES:
            answer.send_error(404)
        elif found and found[1]:
            self.give_range(answer, FILES[name])
        else:
            answer.give(json.dumps(self.resource(name, FILES[name])).encode())
        return True

    def give_range(self, answer: Answer, content: bytes) -> None:
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", answer.headers.get("Range", "bytes=0-"))
        assert asked
        start, end = int(asked[1]), min(int(asked[2] or len(content)), len(content) - 1)
        answer.send_response(206)
        answer.send_header("Content-Range", f"bytes {start}-{end}/{len(content)}")
        answer.send_header("Content-Length", str(end - start + 1))
        answer.end_headers()
        answer.wfile.write(content[start : end + 1])

    @pytest.mark.parametrize("uri", ["gs://b/iris", "gs://b/iris/"])
    def test_a_folder(self, tmp_path: Path, uri: str) -> None:
        assert run([uri, str(tmp_path / "model")], {}) == 0
        assert contents(tmp_path / "model") == MODEL

    def test_one_object(self, tmp_path: Path) -> None:
        assert run(["gs://b/iris/model.bin", str(tmp_path / "model")], {}) == 0
        assert contents(tmp_path / "model") == {"model.bin": WEIGHTS}

    def test_nothing_there(self, tmp_path: Path) -> None:
        assert run(["gs://b/nothing", str(tmp_path / "model")], {}) == 3

    def test_a_server_that_is_not_there(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level("INFO")
        address = "http://localhost:1"
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", address)
        monkeypatch.setattr(gcs, "PATIENCE", 2.0)
        monkeypatch.setattr(progress, "EVERY_SECONDS", 0.1)
        assert run(["gs://b/iris", str(tmp_path / "model")], {"STORAGE_EMULATOR_HOST": address}) == 5
        assert "gs://b/iris: no answer from localhost:1 for 0 s, still trying" in caplog.messages
        assert re.fullmatch(r"gs://b/iris: localhost:1 cannot be reached: \[Errno \d+\] [\w ]+", caplog.messages[-1])


class TestAzure:
    URI = "https://account.blob.core.windows.net/models/iris?sv=1&sig=secret"

    @pytest.fixture(autouse=True)
    def emulated(self, server: Site) -> None:
        server.spoil = self.answer

    def answer(self, answer: Answer) -> bool:
        path, query = unquote(urlsplit(answer.path).path), query_of(answer)
        if query.get("comp") == "list":
            listed = "".join(
                f"<Blob><Name>{name}</Name><Properties><Content-Length>{len(content)}</Content-Length>"
                f"<Etag>tag</Etag><Content-MD5>{base64.b64encode(hashlib.md5(content).digest()).decode()}</Content-MD5>"
                "<BlobType>BlockBlob</BlobType></Properties></Blob>"
                for name, content in FILES.items()
                if name.startswith(query["prefix"])
            )
            body = f"<EnumerationResults><Blobs>{listed}</Blobs><NextMarker/></EnumerationResults>".encode()
            answer.send_response(200)
            answer.send_header("Content-Type", "application/xml")
            answer.send_header("Content-Length", str(len(body)))
            answer.end_headers()
            answer.wfile.write(body)
            return True
        content = FILES[path.removeprefix("/models/")]
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", answer.headers.get("x-ms-range", "bytes=0-"))
        assert asked
        start, end = int(asked[1]), min(int(asked[2] or len(content)), len(content) - 1)
        answer.send_response(206)
        for name, value in {
            "Content-Range": f"bytes {start}-{end}/{len(content)}",
            "Content-Length": str(end - start + 1),
            "ETag": "tag",
            "Last-Modified": "Mon, 02 Nov 2026 10:00:00 GMT",
            "x-ms-blob-type": "BlockBlob",
        }.items():
            answer.send_header(name, value)
        answer.end_headers()
        answer.wfile.write(content[start : end + 1])
        return True

    def test_a_folder(self, server: Site, tmp_path: Path) -> None:
        assert run([self.URI, str(tmp_path / "model")], {"AZURE_SERVICE_URL": server.address}) == 0
        assert contents(tmp_path / "model") == MODEL
        assert all("sig=secret" in path for path, _ in server.requests)

    def test_nothing_there_and_no_secret_in_the_message(self, server: Site, tmp_path: Path) -> None:
        message = tmp_path / "log"
        variables = {"AZURE_SERVICE_URL": server.address, "TERMINATION_MESSAGE_PATH": str(message)}
        assert run([self.URI.replace("iris", "nothing"), str(tmp_path / "model")], variables) == 3
        assert "secret" not in message.read_text()


class TestHuggingFace:
    COMMIT = "c" * 40

    @pytest.fixture(autouse=True)
    def hub(self, server: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        from huggingface_hub import constants

        monkeypatch.setattr(constants, "ENDPOINT", server.address)
        monkeypatch.setattr("huggingface_hub.hf_api.ENDPOINT", server.address, raising=False)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True, raising=False)
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", server.address + "/{repo_id}/resolve/{revision}/{filename}"
        )
        self.lie, self.evil = False, ""
        server.spoil = self.answer

    def files(self) -> list[dict[str, Any]]:
        digest = hashlib.sha256(b"a lie" if self.lie else WEIGHTS).hexdigest()
        lfs = {"sha256": digest, "oid": digest, "size": len(WEIGHTS), "pointerSize": 130}
        return [
            {"rfilename": "model.bin", "size": len(WEIGHTS), "lfs": lfs},
            {"rfilename": self.evil or "deep/config.json", "size": 2},
        ]

    def answer(self, answer: Answer) -> bool:
        path = urlsplit(answer.path).path
        if path.startswith("/api/models/org/iris/tree/"):
            tree = [{"type": "file", "path": f["rfilename"], "size": f["size"], "oid": "0" * 40} for f in self.files()]
            self.tell(answer, tree)
        elif path.startswith("/api/models/org/iris"):
            self.tell(answer, {"id": "org/iris", "sha": self.COMMIT, "siblings": self.files()})
        elif path.startswith(f"/org/iris/resolve/{self.COMMIT}/"):
            answer.give_of_commit(MODEL[path.removeprefix(f"/org/iris/resolve/{self.COMMIT}/")], self.COMMIT)
        else:
            answer.send_response(404)
            answer.send_header("X-Error-Code", "RepoNotFound")
            answer.send_header("Content-Length", "0")
            answer.end_headers()
        return True

    def tell(self, answer: Answer, document: object) -> None:
        answer.give(json.dumps(document).encode())

    def test_a_model(self, server: Site, tmp_path: Path) -> None:
        assert run(["hf://org/iris", str(tmp_path / "model")], {"HF_TOKEN": "hf_x"}) == 0
        assert contents(tmp_path / "model") == MODEL
        asked = [headers for path, headers in server.requests if "org/iris" in path]
        assert {headers.get("authorization") for headers in asked} == {"Bearer hf_x"}

    def test_patterns_choose_files(self, tmp_path: Path) -> None:
        assert run(["hf://org/iris", str(tmp_path / "model")], {"STORAGE_IGNORE_PATTERNS": "*.bin"}) == 0
        assert contents(tmp_path / "model") == {"deep/config.json": b"{}"}

    def test_a_wrong_checksum_is_never_placed(self, tmp_path: Path) -> None:
        self.lie = True
        assert run(["hf://org/iris", str(tmp_path / "model")], {}) == 6
        assert not (tmp_path / "model").exists()

    @pytest.mark.parametrize("name", ["../evil.bin", "/evil.bin", "a/../../../evil.bin"])
    def test_a_hub_that_names_files_outside(self, server: Site, tmp_path: Path, name: str) -> None:
        self.evil = name
        assert run(["hf://org/iris", str(tmp_path / "in" / "model")], {}) == 6
        assert not any("resolve" in path for path, _ in server.requests)

    def test_no_such_model(self, tmp_path: Path) -> None:
        assert run(["hf://org/nothing", str(tmp_path / "model")], {}) == 3


def test_a_hub_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://localhost:1")
    monkeypatch.setattr("huggingface_hub.hf_api.ENDPOINT", "http://localhost:1", raising=False)
    assert run(["hf://org/iris", str(tmp_path / "model")], {}) == 5
    assert caplog.messages[-1].startswith("hf://org/iris: localhost:1 cannot be reached: ")


def test_hugging_face_addresses() -> None:
    assert HubModel.parse("hf://org/iris") == HubModel("org/iris", None)
    assert HubModel.parse("hf://org/iris:v1") == HubModel("org/iris", "v1")
    for wrong in ("hf://iris", "hf://org/iris/more", "hf:///iris"):
        with pytest.raises(Exception, match="expected hf"):
            HubModel.parse(wrong)


def test_a_library_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "boto3", None)
    with pytest.raises(Exception, match=r"install isvc\[s3\]"):
        fetch("s3://b/m", tmp_path, Settings.read({}))
