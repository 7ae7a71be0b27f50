"""Downloads over HTTP: whole, after a broken connection, from a private CA, and refused."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import pytest
from tests.unit.pods.storage_initializer.sites import Answer, Site, private_ca, refusing, site

from isvc.pods.storage_initializer.program import run
from isvc.pods.storage_initializer.schemes.http import file_name, headers_for
from isvc.pods.stores.settings import Settings

MODEL = bytes(range(256)) * 8192


def bring(uri: str, dest: Path, **environment: str) -> tuple[int, str]:
    """Exit status and termination message."""
    message = dest.parent / "termination-log"
    message.unlink(missing_ok=True)
    status = run([uri, str(dest)], {"TERMINATION_MESSAGE_PATH": str(message), **environment})
    return status, message.read_text() if message.exists() else ""


def test_a_file(web: Site, tmp_path: Path) -> None:
    web.files["/models/model.bin"] = MODEL
    assert bring(f"{web.address}/models/model.bin", tmp_path / "model") == (0, "")
    assert (tmp_path / "model" / "model.bin").read_bytes() == MODEL
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_login_in_the_address_is_sent_as_such_and_never_told(web: Site, tmp_path: Path) -> None:
    web.files["/model.bin"] = MODEL
    scheme, _, host = web.address.partition("://")
    uri = f"{scheme}://me:se%40cret@{host}"
    assert bring(f"{uri}/model.bin", tmp_path / "model") == (0, "")
    login = base64.b64encode(b"me:se@cret").decode()
    assert {headers["authorization"] for _, headers in web.requests} == {f"Basic {login}"}
    status, said = bring(f"{uri}/other.bin", tmp_path / "other")
    assert status != 0
    assert "cret" not in said


def test_goes_on_where_the_connection_broke(web: Site, tmp_path: Path) -> None:
    def cut_twice(answer: Answer) -> bool:
        if len(web.requests) > 2:
            return False
        answer.give(MODEL, cut_after=500_000)
        return True

    web.files["/model.bin"] = MODEL
    web.spoil = cut_twice
    assert bring(f"{web.address}/model.bin", tmp_path / "model") == (0, "")
    assert (tmp_path / "model" / "model.bin").read_bytes() == MODEL
    ranges = [headers.get("range") for _, headers in web.requests]
    assert ranges == [None, "bytes=500000-", "bytes=1000000-"]


def test_starts_over_when_the_file_changed_meanwhile(web: Site, tmp_path: Path) -> None:
    def cut_the_old_one(answer: Answer) -> bool:
        if len(web.requests) > 1:
            return False
        answer.give(b"old" * 100_000, cut_after=1000)
        return True

    web.files["/model.bin"] = MODEL
    web.spoil = cut_the_old_one
    assert bring(f"{web.address}/model.bin", tmp_path / "model")[0] == 0
    assert (tmp_path / "model" / "model.bin").read_bytes() == MODEL


def test_gives_up_on_a_server_that_never_gets_further(web: Site, tmp_path: Path) -> None:
    web.spoil = refusing(503)
    status, message = bring(f"{web.address}/model.bin", tmp_path / "model")
    assert status == 5
    assert "gave up after 5 tries" in message
    assert "503" in message
    assert not (tmp_path / "model").exists()


def test_a_wrong_checksum_is_never_placed(web: Site, tmp_path: Path) -> None:
    web.files["/model.bin"] = MODEL
    web.headers["Content-MD5"] = base64.b64encode(hashlib.md5(b"something else").digest()).decode()
    status, message = bring(f"{web.address}/model.bin", tmp_path / "model")
    assert status == 6
    assert "md5" in message
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("x-goog-hash", f"crc32c=AAAAAA==,md5={base64.b64encode(hashlib.md5(MODEL).digest()).decode()}"),
        ("Repr-Digest", f"sha-256=:{base64.b64encode(hashlib.sha256(MODEL).digest()).decode()}:"),
        ("Content-MD5", base64.b64encode(hashlib.md5(MODEL).digest()).decode()),
    ],
)
def test_a_right_checksum_after_a_broken_connection(web: Site, tmp_path: Path, header: str, value: str) -> None:
    web.files["/model.bin"] = MODEL
    web.headers[header] = value

    def cut_first(answer: Answer) -> bool:
        if len(web.requests) != 1:
            return False
        answer.give(MODEL, cut_after=77_777)
        return True

    web.spoil = cut_first
    assert bring(f"{web.address}/model.bin", tmp_path / "model") == (0, "")


@pytest.mark.parametrize(("code", "status"), [(404, 3), (401, 4), (403, 4)])
def test_refusals_say_what_the_server_said(web: Site, tmp_path: Path, code: int, status: int) -> None:
    web.spoil = refusing(code)
    found, message = bring(f"{web.address}/model.bin?signature=secret", tmp_path / "model")
    assert found == status
    assert f"{code}" in message
    assert "secret" not in message
    assert len(web.requests) == 1


def test_a_login_page_is_no_model(web: Site, tmp_path: Path) -> None:
    web.files["/model.bin"] = b"<html>please log in</html>"
    web.headers["Content-Type"] = "text/html; charset=utf-8"
    status, message = bring(f"{web.address}/model.bin", tmp_path / "model")
    assert status == 4
    assert "web page" in message


def test_a_private_ca(tmp_path: Path) -> None:
    ca = tmp_path / "ca"
    ca.mkdir()
    with site(private_ca(ca)) as web:
        web.files["/model.bin"] = MODEL
        status, message = bring(f"{web.address}/model.bin", tmp_path / "model")
        assert status == 4
        assert "not trusted" in message
        trusted = {"CA_BUNDLE_CONFIGMAP_NAME": "roots", "CA_BUNDLE_VOLUME_MOUNT_POINT": str(ca)}
        assert bring(f"{web.address}/model.bin", tmp_path / "model", **trusted) == (0, "")
        assert (tmp_path / "model" / "model.bin").read_bytes() == MODEL


def test_headers_stay_with_their_host(web: Site, tmp_path: Path) -> None:
    with site() as elsewhere:
        elsewhere.files["/moved.bin"] = MODEL
        away = elsewhere.address.replace("127.0.0.1", "localhost")

        def redirect(answer: Answer) -> bool:
            answer.send_response(302)
            answer.send_header("Location", f"{away}/moved.bin")
            answer.send_header("Content-Length", "0")
            answer.end_headers()
            return True

        web.spoil = redirect
        secret = {"127.0.0.1-headers": '{"Authorization": "Bearer t"}'}
        assert bring(f"{web.address}/model.bin", tmp_path / "model", **secret)[0] == 0
        assert web.requests[0][1]["authorization"] == "Bearer t"
        assert "authorization" not in elsewhere.requests[0][1]


def test_headers_of_a_secret() -> None:
    settings = Settings.read({"files.example-headers": "a: b\nc: d:e\n"})
    assert headers_for("https://files.example/m", settings) == {"a": "b", "c": "d:e"}
    assert headers_for("https://other.example/m", settings) == {}


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("https://h/a/model.joblib", "model.joblib"),
        ("https://h/a/my%20model.bin?x=1", "my model.bin"),
        ("https://h/download?file=model.tar.gz", "model.tar.gz"),
        ("https://h/model.zip?raw=true", "model.zip"),
    ],
)
def test_file_names(uri: str, name: str) -> None:
    assert file_name(uri) == name
