"""An API server for the tests of any controller: import the fixtures in conftest.py.

    from isvc.testing import kube_api, kube_namespace

`kube_api` is a server for the whole session, with every built-in kind, RBAC, admission webhooks and garbage collection,
and nothing that runs pods. `kube_namespace` is a namespace of the test's own, deleted after it.
"""

from __future__ import annotations

import base64
import json
import re
import ssl
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

_START_SECONDS = 60.0


@dataclass(frozen=True)
class KubeApi:
    """A running API server. `kubeconfig` is for clients that read one."""

    kubeconfig: Path
    url: str
    token: str
    certificate_authority: str

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Sends one request as the administrator; raises urllib.error.HTTPError unless it succeeds."""
        request = urllib.request.Request(self.url + path, method=method)  # noqa: S310
        request.add_header("Authorization", f"Bearer {self.token}")
        data = None
        if body is not None:
            request.add_header("Content-Type", "application/json")
            data = json.dumps(body).encode()
        context = ssl.create_default_context(cadata=self.certificate_authority)
        with urllib.request.urlopen(request, data, context=context) as answer:  # noqa: S310
            return json.loads(answer.read())


@pytest.fixture(scope="session")
def kube_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeApi]:
    folder = tmp_path_factory.mktemp("kube-api")
    kubeconfig, log = folder / "kubeconfig", folder / "log"
    flags = ["--kubeconfig", str(kubeconfig), "--dir", str(folder / "state"), "--ephemeral", "--controllers"]
    program = [sys.executable, "-c", "from isvc.cli import main; main()", "apiserver"]
    with log.open("wb") as output, subprocess.Popen([*program, *flags], stdout=output, stderr=output) as process:
        try:
            yield _ready(process, kubeconfig, log)
        finally:
            process.terminate()


@pytest.fixture
def kube_namespace(kube_api: KubeApi, request: pytest.FixtureRequest) -> Iterator[str]:
    stem = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:40].strip("-")
    name = f"{stem}-{uuid.uuid4().hex[:8]}"
    kube_api.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    yield name
    kube_api.ask("DELETE", f"/api/v1/namespaces/{name}")


def _ready(process: subprocess.Popen[bytes], kubeconfig: Path, log: Path) -> KubeApi:
    deadline = time.monotonic() + _START_SECONDS
    while not kubeconfig.exists():  # written when the server is ready
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the API server did not start:\n{log.read_text()}")
        time.sleep(0.01)
    document = json.loads(kubeconfig.read_text())
    cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    return KubeApi(kubeconfig, cluster["server"], user["token"], authority)
