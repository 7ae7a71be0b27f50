"""Installing, upgrading, going back, taking over: a stranger types what the pages for platform teams say, in order."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.documents import steps
from tests.servers import Cluster, discard, start

ROOT = Path(__file__).parents[2]
PATIENCE = 300


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster that nobody has used. Helm on a real kube-apiserver is in tests/production."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    cluster = start("embedded", folder)
    try:
        yield cluster
    finally:
        discard(cluster)


class Stranger:
    """Types commands in a checkout. No node runs pods here, so that managers are not waited for.

    Helm leaves the validation of objects to the API server: its own takes longer than all the rest.
    """

    def __init__(self, cluster: Cluster, home: Path) -> None:
        programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self._environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "HOME": str(home), "PATH": programs}

    def types(self, text: str) -> str:
        lines = [line if "isvc-crds" in line else line.replace(" --wait", "") for line in text.splitlines()]
        lines = [re.sub(r"^helm (install|upgrade)", r"\g<0> --disable-openapi-validation", line) for line in lines]
        command = ["bash", "-euo", "pipefail", "-c", "\n".join(lines)]
        done = subprocess.run(
            command, cwd=ROOT, env=self._environment, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
        return done.stdout

    def follows(self, page: str, *numbers: int) -> None:
        blocks = steps((ROOT / "docs" / page).read_text())
        for number in numbers:
            self.types(blocks[number].text)

    def finds(self, what: str) -> set[str]:
        return set(self.types(f"kubectl get {what} -o name").split())


MANAGERS = {"deployment.apps/kserve-controller-manager", "deployment.apps/llmisvc-controller-manager"}


def test_install_upgrade_and_go_back_by_helm(cluster: Cluster, tmp_path: Path) -> None:
    stranger = Stranger(cluster, tmp_path)
    stranger.follows("install.md", 0)
    assert stranger.finds("deployments -n kserve") == MANAGERS
    assert len(stranger.finds("clusterservingruntimes")) > 10
    stranger.follows("upgrade.md", 0, 1)
    assert stranger.finds("deployments -n kserve") == MANAGERS
    stranger.follows("install.md", 2)
    assert not stranger.finds("deployments -n kserve")
    assert len(stranger.finds("clusterservingruntimes")) > 10, "runtimes stay"


def test_install_plain_manifests_and_take_over(cluster: Cluster, tmp_path: Path) -> None:
    """What plain manifests installed stands for KServe: objects of the same names that Helm does not own."""
    stranger = Stranger(cluster, tmp_path)
    stranger.follows("install.md", 1)
    stranger.types(
        'kubectl patch configmap inferenceservice-config -n kserve --type merge -p \'{"data": {"theirs": "{}"}}\''
    )
    service = "service -n kserve llmisvc-webhook-server-service"
    stranger.types(f'kubectl patch {service} -p \'{{"spec": {{"selector": {{"instance": "theirs"}}}}}}\'')
    stranger.follows("takeover.md", 0)
    selector = json.loads(stranger.types(f"kubectl get {service} -o json"))["spec"]["selector"]
    assert set(selector) == {"control-plane"}, "Services lead to our pods alone"
    assert stranger.finds("deployments -n kserve") == MANAGERS
    config = json.loads(stranger.types("kubectl get configmap inferenceservice-config -n kserve -o json"))
    assert config["data"]["theirs"] == "{}", "the configuration stays"
    stranger.follows("takeover.md", 1)
    assert not stranger.finds("deployments -n kserve")
    assert stranger.finds("crds") >= {
        "customresourcedefinition.apiextensions.k8s.io/inferenceservices.serving.kserve.io"
    }
