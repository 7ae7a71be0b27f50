"""Who may do what, and in whose name; the same on every API server."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from tests.servers import Cluster
from tests.waiting import until
from tests.wire import Wire

RBAC = "/apis/rbac.authorization.k8s.io/v1"
REVIEWS = "/apis/authorization.k8s.io/v1"
MERGE = "application/merge-patch+json"
_WRITES = ["get", "create", "update", "patch"]


class Tenant:
    """A namespace with a service account `reader`, and wires of the administrator and of others."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.admin = Wire(cluster.url, cluster.token)
        self.namespace = f"access-{uuid.uuid4().hex[:10]}"
        self.path = f"/api/v1/namespaces/{self.namespace}"
        self.do("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        self.do("POST", f"{self.path}/serviceaccounts", {"metadata": {"name": "reader"}})
        self.user = f"system:serviceaccount:{self.namespace}:reader"

    def do(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        code, answer = self.admin.ask(method, path, body, content_type)
        assert code < 300, answer
        return answer

    def token(self, **spec: Any) -> str:
        asked = {"spec": {"expirationSeconds": 600, **spec}}
        return str(self.do("POST", f"{self.path}/serviceaccounts/reader/token", asked)["status"]["token"])

    def wire(self, token: str, **headers: str) -> Wire:
        wire = Wire(self.cluster.url, token)
        wire.headers |= {name.replace("_", "-"): value for name, value in headers.items()}
        return wire

    def grant(self, *rules: Any, user: str = "", name: str = "granted") -> None:
        subject = {"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}
        account = {"kind": "ServiceAccount", "name": "reader", "namespace": self.namespace}
        base = f"{RBAC}/namespaces/{self.namespace}"
        self.do("POST", f"{base}/roles", {"metadata": {"name": name}, "rules": rules})
        reference = {"kind": "Role", "name": name, "apiGroup": "rbac.authorization.k8s.io"}
        binding = {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject if user else account]}
        self.do("POST", f"{base}/rolebindings", binding)

    def may(self, user: str, verb: str, resource: str, **attributes: str) -> bool:
        asked = {"namespace": self.namespace, "verb": verb, "resource": resource, **attributes}
        review = {"spec": {"user": user, "resourceAttributes": asked}}
        return bool(self.do("POST", f"{REVIEWS}/subjectaccessreviews", review)["status"]["allowed"])


@pytest.fixture
def tenant(cluster: Cluster) -> Iterator[Tenant]:
    tenant = Tenant(cluster)
    yield tenant
    tenant.admin.close()


async def test_a_service_account_may_what_its_roles_say(tenant: Tenant) -> None:
    tenant.grant(
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["mine"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["pods/log", "*/status"], "verbs": ["get"]},
    )

    async def granted() -> bool:
        return tenant.may(tenant.user, "list", "configmaps")

    await until(granted)
    reader = tenant.wire(tenant.token())
    assert reader.ask("GET", f"{tenant.path}/configmaps")[0] == 200
    assert reader.ask("GET", f"{tenant.path}/secrets/mine")[0] == 404
    code, refusal = reader.ask("GET", f"{tenant.path}/secrets/yours")
    assert (code, refusal["reason"]) == (403, "Forbidden")
    assert refusal["message"] == (
        f'secrets "yours" is forbidden: User "{tenant.user}" cannot get resource "secrets" in API group ""'
        f' in the namespace "{tenant.namespace}"'
    )
    assert refusal["details"] == {"name": "yours", "kind": "secrets"}
    code, refusal = reader.ask("GET", "/api/v1/nodes")
    assert refusal["message"] == (
        f'nodes is forbidden: User "{tenant.user}" cannot list resource "nodes" in API group "" at the cluster scope'
    )
    assert reader.ask("POST", f"{tenant.path}/configmaps", {"metadata": {"name": "a"}})[0] == 403
    assert reader.ask("GET", "/apis/apps/v1")[0] == 200  # system:discovery
    assert reader.ask("GET", "/metrics")[1]["message"] == f'forbidden: User "{tenant.user}" cannot get path "/metrics"'
    assert tenant.may(tenant.user, "get", "pods", subresource="log")
    assert tenant.may(tenant.user, "get", "deployments", subresource="status", group="")
    assert not tenant.may(tenant.user, "get", "pods")
    assert not tenant.may(tenant.user, "list", "configmaps", namespace="default")


async def test_roles_that_come_with_the_server(tenant: Tenant) -> None:
    user = f"viewer-{tenant.namespace}"
    reference = {"kind": "ClusterRole", "name": "system:aggregate-to-view", "apiGroup": "rbac.authorization.k8s.io"}
    subjects = [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}]
    binding = {"metadata": {"name": "views"}, "roleRef": reference, "subjects": subjects}
    tenant.do("POST", f"{RBAC}/namespaces/{tenant.namespace}/rolebindings", binding)

    async def granted() -> bool:
        return tenant.may(user, "list", "pods")

    await until(granted)
    assert tenant.may(user, "watch", "deployments", group="apps")
    assert not tenant.may(user, "get", "secrets")
    assert not tenant.may(user, "delete", "pods")
    for group, verb, allowed in (("system:masters", "delete", True), ("system:authenticated", "delete", False)):
        asked = {"user": "x", "groups": [group], "resourceAttributes": {"verb": verb, "resource": "nodes"}}
        answer = tenant.do("POST", f"{REVIEWS}/subjectaccessreviews", {"spec": asked})
        assert answer["status"]["allowed"] is allowed


async def test_impersonation_is_for_those_who_may(tenant: Tenant) -> None:
    tenant.grant({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}, user="ann")

    async def granted() -> bool:
        return tenant.may("ann", "list", "configmaps")

    await until(granted)
    ann = tenant.wire(tenant.cluster.token, Impersonate_User="ann", Impersonate_Group="devs")
    who = ann.ask("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {})[1]["status"]["userInfo"]
    assert (who["username"], who["groups"]) == ("ann", ["devs", "system:authenticated"])
    assert ann.ask("GET", f"{tenant.path}/configmaps")[0] == 200
    assert ann.ask("GET", f"{tenant.path}/secrets")[0] == 403
    reader = tenant.wire(tenant.token(), Impersonate_User="ann")
    code, refusal = reader.ask("GET", f"{tenant.path}/configmaps")
    assert code == 403
    assert f'User "{tenant.user}" cannot impersonate resource "users" in API group ""' in refusal["message"]
    account = tenant.wire(tenant.cluster.token, Impersonate_User=tenant.user)
    who = account.ask("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {})[1]["status"]["userInfo"]
    assert set(who["groups"]) >= {"system:serviceaccounts", f"system:serviceaccounts:{tenant.namespace}"}


async def test_nobody_grants_what_they_do_not_hold(tenant: Tenant) -> None:
    tenant.grant(
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]},
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"], "verbs": _WRITES},
        user="ann",
    )

    async def granted() -> bool:
        return tenant.may("ann", "get", "configmaps")

    await until(granted)
    ann = tenant.wire(tenant.cluster.token, Impersonate_User="ann")
    roles = f"{RBAC}/namespaces/{tenant.namespace}/roles"
    held = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]
    assert ann.ask("POST", roles, {"metadata": {"name": "held"}, "rules": held})[0] == 201
    more = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]
    code, refusal = ann.ask("POST", roles, {"metadata": {"name": "more"}, "rules": more})
    assert code == 403
    assert "is attempting to grant RBAC permissions not currently held" in refusal["message"]
    assert '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}' in refusal["message"]
    assert ann.ask("PATCH", f"{roles}/held", {"rules": more}, MERGE)[0] == 403
    reference = {"kind": "ClusterRole", "name": "cluster-admin", "apiGroup": "rbac.authorization.k8s.io"}
    subjects = [{"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"}]
    binding = {"metadata": {"name": "all"}, "roleRef": reference, "subjects": subjects}
    assert ann.ask("POST", f"{RBAC}/namespaces/{tenant.namespace}/rolebindings", binding)[0] == 403


async def test_a_token_is_reviewed_and_ends_with_what_it_is_bound_to(tenant: Tenant) -> None:
    pod = {
        "metadata": {"name": "p"},
        "spec": {"serviceAccountName": "reader", "containers": [{"name": "c", "image": "i"}]},
    }
    made = tenant.do("POST", f"{tenant.path}/pods", pod)
    reference = {"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": made["metadata"]["uid"]}
    token = tenant.token(boundObjectRef=reference)
    reviews = "/apis/authentication.k8s.io/v1/tokenreviews"
    status = tenant.do("POST", reviews, {"spec": {"token": token}})["status"]
    assert status["authenticated"] is True
    assert status["user"]["username"] == tenant.user
    assert status["user"]["extra"]["authentication.kubernetes.io/pod-name"] == ["p"]
    other = tenant.token(audiences=["elsewhere"])
    assert tenant.do("POST", reviews, {"spec": {"token": other}})["status"].get("authenticated", False) is False
    assert tenant.do("POST", reviews, {"spec": {"token": other, "audiences": ["elsewhere"]}})["status"]["authenticated"]
    forged = token.rpartition(".")[0] + "." + "A" * 86
    assert tenant.do("POST", reviews, {"spec": {"token": forged}})["status"].get("authenticated", False) is False
    assert tenant.wire(forged).ask("GET", "/api/v1")[0] == 401
    assert (
        tenant.admin.ask("POST", f"{tenant.path}/serviceaccounts/reader/token", {"spec": {"expirationSeconds": 10}})[0]
        == 422
    )
    tenant.do("DELETE", f"{tenant.path}/pods/p", {"gracePeriodSeconds": 0})

    async def ended() -> bool:
        return tenant.wire(token).ask("GET", "/api/v1")[0] == 401

    await until(ended)


def running_pod(tenant: Tenant, name: str) -> str:
    """A pod that its budget counts: on a node, and ready."""
    spec = {"nodeName": "n", "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}
    tenant.do("POST", f"{tenant.path}/pods", {"metadata": {"name": name, "labels": {"app": "a"}}, "spec": spec})
    ready = {"type": "Ready", "status": "True"}
    tenant.do(
        "PATCH", f"{tenant.path}/pods/{name}/status", {"status": {"phase": "Running", "conditions": [ready]}}, MERGE
    )
    return f"{tenant.path}/pods/{name}"


def test_an_eviction_respects_the_budget(tenant: Tenant) -> None:
    budgets = f"/apis/policy/v1/namespaces/{tenant.namespace}/poddisruptionbudgets"
    pods = [running_pod(tenant, name) for name in ("a", "b")]
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}
    tenant.do("POST", budgets, {"metadata": {"name": "pdb"}, "spec": spec})
    status = {
        "observedGeneration": 1,
        "currentHealthy": 2,
        "desiredHealthy": 1,
        "expectedPods": 2,
        "disruptionsAllowed": 1,
    }
    tenant.do("PATCH", f"{budgets}/pdb/status", {"status": status}, MERGE)
    eviction: dict[str, Any] = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "a", "namespace": tenant.namespace},
    }
    assert tenant.do("POST", f"{pods[0]}/eviction", eviction)["status"] == "Success"
    assert tenant.do("GET", pods[0])["metadata"]["deletionTimestamp"]
    after = tenant.do("GET", f"{budgets}/pdb")["status"]
    assert (after["disruptionsAllowed"], list(after["disruptedPods"])) == (0, ["a"])
    eviction["metadata"]["name"] = "b"
    code, refusal = tenant.admin.ask("POST", f"{pods[1]}/eviction", eviction)
    assert (code, refusal["reason"]) == (429, "TooManyRequests")
    assert refusal["message"] == "Cannot evict pod as it would violate the pod's disruption budget."
    assert refusal["details"]["causes"][0]["reason"] == "DisruptionBudget"
    assert "deletionTimestamp" not in tenant.do("GET", pods[1])["metadata"]


def test_a_pod_is_resized_and_debugged_through_its_subresources(tenant: Tenant) -> None:
    pod = running_pod(tenant, "a")
    wanted = {"name": "c", "resources": {"requests": {"cpu": "2"}}}
    strategic = "application/strategic-merge-patch+json"
    assert tenant.admin.ask("PATCH", pod, {"spec": {"containers": [wanted]}}, strategic)[0] == 422
    resized = tenant.do("PATCH", f"{pod}/resize", {"spec": {"containers": [wanted]}}, strategic)
    assert resized["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "2"
    assert resized["metadata"]["generation"] == 2
    code, refusal = tenant.admin.ask(
        "PATCH", f"{pod}/resize", {"spec": {"containers": [{"name": "c", "resources": {"requests": None}}]}}, strategic
    )
    assert code == 422
    assert "Pod QOS Class may not change as a result of resizing" in refusal["message"]
    image = tenant.do("PATCH", f"{pod}/resize", {"spec": {"containers": [{"name": "c", "image": "other"}]}}, strategic)
    assert image["spec"]["containers"][0]["image"] == "i"
    debugger = {"name": "debugger", "image": "busybox"}
    path, change = f"{pod}/ephemeralcontainers", {"spec": {"ephemeralContainers": [debugger]}}
    debugged = tenant.do("PATCH", path, change, strategic)
    assert [each["name"] for each in debugged["spec"]["ephemeralContainers"]] == ["debugger"]
    assert debugged["metadata"]["generation"] == 3
    debugger["image"] = "another"
    assert tenant.admin.ask("PATCH", path, change, strategic)[0] == 422
