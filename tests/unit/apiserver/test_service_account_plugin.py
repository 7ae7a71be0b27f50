"""The ServiceAccount plugin, which is on where kube-apiserver's flags do not turn it off."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.apiserver.conftest import MERGE
from tests.waiting import until

NAMESPACE = "/api/v1/namespaces/default"
POD: dict[str, Any] = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
with_accounts = pytest.mark.parametrize("http", [{"without_plugins": ()}], indirect=True)


@with_accounts
async def test_a_pod_needs_an_account_and_gets_its_token(http):
    missing = await http.ask("POST", f"{NAMESPACE}/pods", POD)
    assert missing.code == 403
    assert missing.message == (
        'pods "a" is forbidden: error looking up service account default/default: serviceaccount "default" not found'
    )
    pull = [{"name": "registry"}]
    await http.create(f"{NAMESPACE}/serviceaccounts", metadata={"name": "default"}, imagePullSecrets=pull)
    spec = (await http.create(f"{NAMESPACE}/pods", **POD))["spec"]
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("default", "default")
    assert spec["imagePullSecrets"] == pull
    [volume], [mount] = spec["volumes"], spec["containers"][0]["volumeMounts"]
    assert volume["name"].startswith("kube-api-access-")
    assert mount == {
        "name": volume["name"],
        "readOnly": True,
        "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
    }
    sources = volume["projected"]["sources"]
    assert [next(iter(each)) for each in sources] == ["serviceAccountToken", "configMap", "downwardAPI"]
    assert sources[0]["serviceAccountToken"] == {"expirationSeconds": 3607, "path": "token"}


@with_accounts
async def test_the_token_stays_away_where_pod_or_account_say_so(http):
    await http.create(f"{NAMESPACE}/serviceaccounts", metadata={"name": "default"}, automountServiceAccountToken=False)
    assert "volumes" not in (await http.create(f"{NAMESPACE}/pods", **POD))["spec"]
    wanting = {**POD, "metadata": {"name": "b"}, "spec": {**POD["spec"], "automountServiceAccountToken": True}}
    assert "volumes" in (await http.create(f"{NAMESPACE}/pods", **wanting))["spec"]


@with_accounts
async def test_an_account_may_keep_pods_from_other_secrets(http):
    note = {"kubernetes.io/enforce-mountable-secrets": "true"}
    account = {"name": "default", "annotations": note}
    await http.create(f"{NAMESPACE}/serviceaccounts", metadata=account, secrets=[{"name": "mine"}])
    env = [{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "yours", "key": "k"}}}]
    foreign = {**POD, "spec": {"containers": [{"name": "c", "image": "i", "env": env}]}}
    refused = await http.ask("POST", f"{NAMESPACE}/pods", foreign)
    assert refused.message.endswith(
        'container c with envVar KEY referencing secret.secretName="yours" is not allowed because service account'
        " default does not reference that secret"
    )
    env[0]["valueFrom"] = {"secretKeyRef": {"name": "mine", "key": "k"}}
    await http.create(f"{NAMESPACE}/pods", **foreign)
    changed = await http.ask("PATCH", f"{NAMESPACE}/pods/a", {"metadata": {"labels": {"a": "b"}}}, MERGE)
    assert changed.code == 200


with_controllers = pytest.mark.parametrize("http", [{"controllers": True}], indirect=True)


@with_controllers
async def test_a_pod_right_after_its_namespace_gets_the_token_of_the_default_account(http):
    await http.create("/api/v1/namespaces", metadata={"name": "new"})
    spec = (await http.create("/api/v1/namespaces/new/pods", **POD))["spec"]
    assert spec["serviceAccountName"] == "default"
    assert [each["name"].startswith("kube-api-access-") for each in spec["volumes"]] == [True]


@with_controllers
async def test_every_namespace_has_a_default_account_and_the_authority(http):
    await http.create("/api/v1/namespaces", metadata={"name": "new"})
    authority = http.server.identity.ca.read_text()
    for namespace in ("default", "kube-system", "new"):
        account = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
        published = f"/api/v1/namespaces/{namespace}/configmaps/kube-root-ca.crt"

        async def is_complete(account: str = account, published: str = published) -> bool:
            found = await http.ask("GET", published)
            return (await http.ask("GET", account)).code == 200 and authority in found.body.get("data", {}).values()

        await until(is_complete)
        await http.ask("DELETE", account)
        await until(is_complete)
        await http.patch(published, {"data": {"ca.crt": "another"}})
        await until(is_complete)


@with_controllers
async def test_a_namespace_that_ends_takes_them_along(http):
    await http.create("/api/v1/namespaces", metadata={"name": "new"})
    await http.ask("DELETE", "/api/v1/namespaces/new")

    async def is_gone() -> bool:
        return (await http.ask("GET", "/api/v1/namespaces/new")).code == 404

    await until(is_gone)


@with_controllers
async def test_an_account_that_does_not_exist_is_refused(http):
    spec = {**POD["spec"], "serviceAccountName": "missing"}
    refused = await http.ask("POST", f"{NAMESPACE}/pods", {**POD, "spec": spec})
    assert refused.code == 403
    assert 'serviceaccount "missing" not found' in refused.message
