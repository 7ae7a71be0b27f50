"""`kubectl explain` of our kinds says something about every field that people write."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.definitions import PATIENCE
from tests.servers import Cluster
from tests.waiting import until

from isvc.api.kinds import KINDS
from isvc.api.kinds.crds import crd
from isvc.kube.errors import AlreadyExists
from isvc.kube.resource import CUSTOM_RESOURCE_DEFINITIONS

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")

PATHS = {
    "inferenceservices": {
        "isvc.spec.predictor.model.storageUri": "where the model is stored",
        "isvc.spec.predictor.containers.image": "the image to run",
    },
    "inferencegraphs": {"ig.spec.nodes.steps.condition": "when to take this step"},
    "llminferenceservices": {"llmisvc.spec.template.containers.args": "arguments of the command"},
}


async def install(client: Any, plural: str) -> None:
    definition = next(each for each in KINDS if each.resource.plural == plural)
    described = crd(definition, described=True)
    try:
        await client.create(CUSTOM_RESOURCE_DEFINITIONS, described)
    except AlreadyExists:
        await client.patch(
            CUSTOM_RESOURCE_DEFINITIONS,
            described["metadata"]["name"],
            {"spec": {"versions": described["spec"]["versions"]}},
        )


def explain(path: str, environment: dict[str, str]) -> str:
    """What kubectl says of the field itself."""
    command = ["kubectl", "explain", path]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    said = re.search(r"DESCRIPTION:\n(.*?)\n\s*\n", done.stdout + "\n\n", re.DOTALL)
    text = " ".join(said[1].split()) if said else ""
    return "" if text == "<empty>" else text


@pytest.mark.parametrize("plural", PATHS)
async def test_explain(client: Any, cluster: Cluster, tmp_path: Path, plural: str) -> None:
    await install(client, plural)
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "HOME": str(tmp_path)}
    for path, words in PATHS[plural].items():
        said = await until(partial(explain, path, environment), f"{path} is described", within=PATIENCE)
        assert words in said.lower()
