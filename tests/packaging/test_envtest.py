"""The assets of `isvc envtest`, started as controller-runtime's envtest starts etcd and kube-apiserver."""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
import sys
import urllib.request
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.ports import free_port
from tests.waiting import wait_until

from isvc.apiserver.access import identity


@pytest.fixture(scope="module")
def assets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("assets")
    program = Path(sys.executable).with_name("isvc")
    done = subprocess.run([program, "envtest", folder], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == str(folder.resolve())
    return folder


def test_etcd_says_that_it_is_healthy(assets: Path, tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    flags = [f"--listen-client-urls={url}", f"--data-dir={tmp_path}", "--unsafe-no-fsync=true"]
    with subprocess.Popen([assets / "etcd", *flags]) as process:

        def healthy() -> bool:
            try:
                with urllib.request.urlopen(f"{url}/health") as answer:
                    return bool(answer.read() == b'{"health":"true"}')
            except OSError:
                return False

        try:
            wait_until(healthy)
        finally:
            process.terminate()


def test_kube_apiserver_takes_certificates_and_tokens_from_its_flags(assets: Path, tmp_path: Path) -> None:
    """envtest brings a serving certificate in --cert-dir, and an authority of its own for clients."""
    made = identity.load(tmp_path / "made", ["localhost", "127.0.0.1"], datetime.now(UTC)).folder
    certificates = tmp_path / "certs"
    certificates.mkdir()
    for name in ("apiserver.crt", "apiserver.key"):
        shutil.copy(made / name, certificates / name)
    (tmp_path / "tokens.csv").write_text('secret,ann,1,"system:masters"\n')
    port = free_port()
    flags = [
        f"--cert-dir={certificates}",
        f"--secure-port={port}",
        f"--client-ca-file={made / 'ca.crt'}",
        f"--token-auth-file={tmp_path / 'tokens.csv'}",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--etcd-servers=http://127.0.0.1:1",
        "--authorization-mode=RBAC",
        "--allow-privileged",
        "--feature-gates=WatchList=true,kube:APIServerTracing=true",
        "--bind-address=127.0.0.1",
    ]
    context = ssl.create_default_context(cafile=made / "ca.crt")

    def get(path: str, with_certificate: bool = False, token: str = "") -> bytes:
        shown = ssl.create_default_context(cafile=made / "ca.crt") if with_certificate else context
        if with_certificate:
            shown.load_cert_chain(made / "admin.crt", made / "admin.key")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        request = urllib.request.Request(f"https://127.0.0.1:{port}{path}", headers=headers)
        with urllib.request.urlopen(request, context=shown) as answer:
            content: bytes = answer.read()
        return content

    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    with subprocess.Popen([assets / "kube-apiserver", *flags], env=environment) as process:

        def healthy() -> bool:
            try:
                return get("/healthz") == b"ok"
            except OSError:
                return False

        try:
            wait_until(healthy)
            assert b'"NamespaceList"' in get("/api/v1/namespaces", with_certificate=True)
            assert b'"clusterIP":"10.0.0.1"' in get("/api/v1/namespaces/default/services/kubernetes", token="secret")
        finally:
            process.terminate()


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("--fail-fast=true", "unknown flag: --fail-fast"),
        ("--secure=1", "unknown flag: --secure"),
        ("now", '"kube-apiserver" does not take any arguments, got ["now"]'),
        ("--feature-gates=Levitation=true", "unrecognized feature gate: Levitation"),
        ("--feature-gates=WatchList", "missing bool value for WatchList"),
        ("--feature-gates=kube:WatchList=maybe", "invalid value of WatchList=maybe"),
        ("--feature-gates=APIServerTracing=false", "cannot set feature gate APIServerTracing to false"),
    ],
)
def test_what_kube_apiserver_refuses_is_refused_in_its_words(
    assets: Path, tmp_path: Path, flag: str, words: str
) -> None:
    command = [str(assets / "kube-apiserver"), f"--cert-dir={tmp_path}", f"--secure-port={free_port()}", flag]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr.startswith(f"Error: {words}")) == (1, True), done.stderr
