"""What people read when a cluster does not accept their token, or no longer does."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.servers import Cluster

from isvc.cli import main
from isvc.kube.resource import SERVICE_ACCOUNTS
from isvc.toolkit.client import Client

COMMANDS = (("explain",), ("explain", "iris"), ("wait", "iris"))


async def assert_refused(cluster: Cluster, folder: Path, token: str, *command: str) -> None:
    document = json.loads(cluster.kubeconfig.read_text())
    document["users"][0]["user"] = {"token": token}
    path = folder / "kubeconfig"
    path.write_text(json.dumps(document))
    words = [*command, "-n", "default", "--kubeconfig", str(path)]
    result = await asyncio.to_thread(CliRunner().invoke, main, words)
    sentence = "Error: the cluster does not accept these credentials; log in again, or choose another --context\n"
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", sentence)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
async def test_a_wrong_token(cluster, tmp_path, command):
    await assert_refused(cluster, tmp_path, "wrong", *command)


async def test_a_token_that_is_no_longer_valid(cluster, client: Client, namespace, tmp_path):
    """The shortest life of a token is ten minutes; it ends with its account, too."""
    await client.create(SERVICE_ACCOUNTS, {"metadata": {"name": "gone"}}, namespace)
    path = SERVICE_ACCOUNTS.path(namespace, "gone", "token")
    token = (await client.request("POST", path, body={"spec": {}}))["status"]["token"]
    await client.delete(SERVICE_ACCOUNTS, "gone", namespace)
    for command in COMMANDS:
        await assert_refused(cluster, tmp_path, token, *command)
