"""The ServiceAccount plugin, which is on where kube-apiserver's flags do not turn it off."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.apiserver.conftest import MERGE

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
