"""Requests to get into a pod that no node runs, and who may make them: the same on every API server."""

from __future__ import annotations

import asyncio
import subprocess
import uuid

import pytest
from tests.servers import Cluster
from tests.waiting import until

from isvc.kube.objects import Object
from isvc.kube.resource import PODS, ROLE_BINDINGS, ROLES


@pytest.fixture
async def pod(client) -> str:
    name = f"pod-{uuid.uuid4().hex[:8]}"
    spec = {"containers": [{"name": "main", "image": "nginx"}]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}
    await client.create(PODS, body)
    return name


async def kubectl(cluster: Cluster, *words: str) -> str:
    command = ["kubectl", "--kubeconfig", str(cluster.kubeconfig), *words]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    return done.stderr


@pytest.mark.parametrize("flags", [["exec", "{}", "--", "ls"], ["attach", "{}"]], ids=["exec", "attach"])
async def test_a_pod_without_a_node_says_so(cluster, pod, flags):
    said = await kubectl(cluster, *(word.format(pod) for word in flags))
    assert f"pod {pod} does not have a host assigned" in said


async def test_a_container_that_the_pod_does_not_have(cluster, pod):
    assert f"container other is not valid for pod {pod}" in await kubectl(
        cluster, "exec", pod, "-c", "other", "--", "ls"
    )


async def test_who_may_only_get_pods_exec_does_not_get_in(cluster, client, pod):
    """A WebSocket begins with a GET, which alone is no right to run commands."""
    user = f"user-{uuid.uuid4().hex[:8]}"
    meta = {"name": user, "namespace": "default"}
    rules = [{"apiGroups": [""], "resources": ["pods", "pods/exec"], "verbs": ["get"]}]
    group = {"apiVersion": "rbac.authorization.k8s.io/v1"}
    role: Object = {**group, "kind": "Role", "metadata": meta, "rules": rules}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": user}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
    binding: Object = {**group, "kind": "RoleBinding", "metadata": meta, "roleRef": reference, "subjects": [subject]}
    await client.create(ROLES, role)
    await client.create(ROLE_BINDINGS, binding)

    async def is_refused() -> bool:
        said = await kubectl(cluster, "--as", user, "exec", pod, "--", "ls")
        return f'User "{user}" cannot create resource "pods/exec"' in said

    await until(is_refused, "the role to be known, and not to be enough")
