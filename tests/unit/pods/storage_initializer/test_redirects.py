"""Redirects from servers that mean harm: to files, to the machine's own services, and with somebody's credentials."""

from __future__ import annotations

import ipaddress
import socket
from pathlib import Path
from typing import Any

import pytest
from tests.unit.pods.storage_initializer.sites import Answer, Site, private_ca, site

from isvc.pods.storage_initializer.program import run
from isvc.pods.storage_initializer.web_policy import _refuse_metadata
from isvc.pods.stores.errors import Denied


def redirect(to: str) -> Any:
    def answer(request: Answer) -> bool:
        request.send_response(302)
        request.send_header("Location", to)
        request.send_header("Content-Length", "0")
        request.end_headers()
        return True

    return answer


def bring(uri: str, folder: Path, **environment: str) -> tuple[int, str]:
    message = folder / "termination-log"
    status = run([uri, str(folder / "model")], {"TERMINATION_MESSAGE_PATH": str(message), **environment})
    assert not (folder / "model").exists()
    return status, message.read_text()


@pytest.mark.parametrize(
    "target",
    [
        "file:///etc/passwd",
        "ftp://127.0.0.1/model.bin",
        "data:text/plain,model",
        "http://169.254.169.254/latest/meta-data/",
        "http://[fe80::1]/",
        "http://[::ffff:169.254.169.254]/",
        "http://100.100.100.200/",
    ],
)
def test_not_followed(web: Site, tmp_path: Path, target: str) -> None:
    web.spoil = redirect(target)
    status, _ = bring(f"{web.address}/model.bin", tmp_path)
    assert status in (1, 4)
    assert len(web.requests) == 1


def test_one_that_never_ends_is_told_in_one_line(web: Site, tmp_path: Path) -> None:
    web.spoil = redirect("/model.bin")
    _, message = bring(f"{web.address}/model.bin", tmp_path)
    assert "infinite loop" in message
    assert len(message.splitlines()) == 1


def test_metadata_is_no_source_even_when_asked_for(tmp_path: Path) -> None:
    status, message = bring("http://169.254.169.254/latest/meta-data/", tmp_path)
    assert status == 4
    assert "metadata" in message


@pytest.mark.parametrize("address", ["169.254.169.254", "fe80::1", "::ffff:169.254.169.254", "fd00:ec2::254"])
def test_addresses_that_a_name_may_lead_to(address: str) -> None:
    with pytest.raises(Denied):
        _refuse_metadata(ipaddress.ip_address(address))


def test_from_another_host_to_this_machine(web: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = socket.getaddrinfo
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda host, *rest, **options: ask(host.replace("models.example", "127.0.0.1"), *rest)
    )
    web.files["/admin"] = b"internal"
    web.spoil = lambda answer: answer.path != "/admin" and redirect(f"{web.address}/admin")(answer)
    port = web.address.rpartition(":")[2]
    status, message = bring(f"http://models.example:{port}/model.bin", tmp_path)
    assert status == 4
    assert "this machine" in message
    assert [path for path, _ in web.requests] == ["/model.bin"]


def test_from_tls_to_none(tmp_path: Path, web: Site) -> None:
    ca = tmp_path / "ca"
    ca.mkdir()
    with site(private_ca(ca)) as secure:
        web.files["/model.bin"] = b"weights"
        secure.spoil = redirect(f"{web.address}/model.bin")
        trusted = {"CA_BUNDLE_CONFIGMAP_NAME": "roots", "CA_BUNDLE_VOLUME_MOUNT_POINT": str(ca)}
        assert bring(f"{secure.address}/model.bin", tmp_path, **trusted)[0] == 4
        assert web.requests == []


def test_another_port_is_another_origin(web: Site, tmp_path: Path) -> None:
    with site() as other:
        web.spoil = redirect(f"{other.address}/moved.bin")
        secret = {"127.0.0.1-headers": '{"Authorization": "Bearer t", "X-Api-Key": "k", "Cookie": "c"}'}
        bring(f"{web.address}/model.bin", tmp_path, **secret)
        sent = other.requests[0][1]
        assert not {"authorization", "x-api-key", "cookie"} & set(sent)
