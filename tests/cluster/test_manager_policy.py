"""What the chart's admission policy leaves of the managers' rights to Secrets and leases of other namespaces."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
import yaml
from tests.servers import Cluster
from tests.waiting import until

from isvc.cli import chart
from isvc.kube.errors import ApiError
from isvc.kube.objects import Object, name_of
from isvc.kube.resource import NAMESPACES, SECRETS, Resource
from isvc.toolkit.client import Client, kubeconfig

LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
_ADMISSION, _RBAC = "admissionregistration.k8s.io", "rbac.authorization.k8s.io"
POLICIES = Resource(_ADMISSION, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", False)
BINDINGS = Resource(_ADMISSION, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", False)
ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
ROLES = Resource(_RBAC, "v1", "clusterroles", "ClusterRole", False)
ROLE_BINDINGS = Resource(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", False)
INSTALLED = {each.kind: each for each in (POLICIES, BINDINGS, ACCOUNTS, ROLES, ROLE_BINDINGS)}
OURS = {"app.kubernetes.io/part-of": "llminferenceservice"}


@pytest.fixture
async def system(client: Client) -> AsyncIterator[str]:
    """A namespace with the accounts of both managers, their roles and the policy; all of it goes again."""
    name = f"system-{uuid4().hex[:8]}"
    await client.create(NAMESPACES, NAMESPACES.typed({"metadata": {"name": name}}))
    made = [each for each in chart.render(name, {}) if each["kind"] in INSTALLED]
    for each in made:  # those of the cluster under names of their own
        if not INSTALLED[each["kind"]].namespaced:
            each["metadata"]["name"] = f"{name_of(each)}.{name}"
            if each["kind"] == BINDINGS.kind:
                each["spec"]["policyName"] += f".{name}"
            if each["kind"] == ROLE_BINDINGS.kind:
                each["roleRef"]["name"] += f".{name}"
        await client.create(INSTALLED[each["kind"]], each)
    yield name
    for each in reversed(made):
        resource = INSTALLED[each["kind"]]
        await client.delete(resource, name_of(each), name if resource.namespaced else "")


async def as_manager(cluster: Cluster, client: Client, system: str) -> Client:
    path = f"/api/v1/namespaces/{system}/serviceaccounts/llmisvc-controller-manager/token"
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": (await client.request("POST", path, body=review))["status"]["token"]}
    file = cluster.dir / f"{system}.kubeconfig"
    file.write_text(yaml.safe_dump(config))
    return Client.connect(kubeconfig.load(file))


def secret(name: str, namespace: str, labels: dict[str, str]) -> Object:
    return SECRETS.typed({"metadata": {"name": name, "namespace": namespace, "labels": labels}})


def lease(name: str, namespace: str) -> Object:
    return LEASES.typed({"metadata": {"name": name, "namespace": namespace}, "spec": {"holderIdentity": "me"}})


async def refusal(write: object) -> str:
    try:
        await write  # type: ignore[misc]
    except ApiError as error:
        return str(error)
    return ""


async def test_managers_write_their_own_alone(cluster: Cluster, client: Client, namespace: str, system: str) -> None:
    async with await as_manager(cluster, client, system) as manager:

        async def in_force() -> bool:
            found = await refusal(manager.create(LEASES, lease(f"a-{uuid4().hex[:8]}", "kube-system")))
            return "own namespace alone" in found

        await until(in_force, "the policy refuses a lease in kube-system", within=60, every=0.2)
        assert not await refusal(manager.create(LEASES, lease("mine", system)))
        assert not await refusal(manager.create(SECRETS, secret("certificate", namespace, OURS)))
        assert "no other Secrets" in await refusal(manager.create(SECRETS, secret("password", namespace, {})))
        taken = await client.create(SECRETS, secret("users", namespace, {}))
        taken["metadata"]["labels"] = OURS
        assert "no other Secrets" in await refusal(manager.update(SECRETS, taken))
        assert "no other Secrets" in await refusal(manager.delete(SECRETS, "users", namespace))
        assert not await refusal(manager.delete(SECRETS, "certificate", namespace))
    assert not await refusal(client.delete(SECRETS, "users", namespace))
