"""A session with the real kubectl, the same on every API server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.servers import Cluster
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: main, image: "nginx:1.27", ports: [{containerPort: 80}]}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
"""
AVAILABLE = {
    "observedGeneration": 9,
    "replicas": 2,
    "updatedReplicas": 2,
    "readyReplicas": 2,
    "availableReplicas": 2,
    "conditions": [{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"}],
}
Kubectl = Callable[..., str]


@pytest.fixture
def kubectl(cluster: Cluster, tmp_path: Path) -> Iterator[Kubectl]:
    """Runs kubectl in a namespace of the test's own; fails loudly unless a failure is expected."""
    namespace = f"kubectl-{uuid.uuid4().hex[:8]}"
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "HOME": str(tmp_path)}

    def run(*arguments: str, stdin: str | None = None, fails: bool = False) -> str:
        done = subprocess.run(
            ["kubectl", "--namespace", namespace, *arguments],
            input=stdin,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        said = done.stdout + done.stderr
        assert (done.returncode != 0) == fails, f"kubectl {' '.join(arguments)} exited with {done.returncode}: {said}"
        return said

    run("create", "namespace", namespace)
    yield run
    run("delete", "namespace", namespace, "--wait=false")


def test_apply_changes_what_changed_and_nothing_else(kubectl: Kubectl):
    assert "deployment.apps/web created" in kubectl("apply", "-f", "-", stdin=WEB)
    assert "deployment.apps/web unchanged" in kubectl("apply", "-f", "-", stdin=WEB)
    newer = WEB.replace("1.27", "1.28")
    assert "+      - image: nginx:1.28" in kubectl("diff", "-f", "-", stdin=newer, fails=True)
    said = kubectl("apply", "-f", "-", stdin=newer)
    assert "deployment.apps/web configured" in said
    assert "service/web unchanged" in said
    image = "jsonpath={.spec.template.spec.containers[0].image}"
    assert kubectl("get", "deployment", "web", "-o", image) == "nginx:1.28"


def test_apply_refuses_what_does_not_fit(kubectl: Kubectl):
    said = kubectl("apply", "-f", "-", stdin=WEB.replace("replicas: 2", "replicsa: 2"), fails=True)
    assert 'unknown field "spec.replicsa"' in said
    said = kubectl("apply", "-f", "-", stdin=WEB.replace("replicas: 2", "replicas: -2"), fails=True)
    assert "spec.replicas: Invalid value: -2: must be greater than or equal to 0" in said
    said = kubectl("apply", "-f", "-", stdin=WEB.replace("replicas: 2", "replicas: two"), fails=True)
    assert "cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32" in said


LIST = """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {a: b}}
- {apiVersion: v1, kind: Service, metadata: {name: two}, spec: {ports: [{port: 80}]}}
"""


def test_a_list_is_checked_against_the_older_document(kubectl: Kubectl):
    said = kubectl("apply", "-f", "-", stdin=LIST.replace("port: 80", "prot: 80"), fails=True)
    assert 'ValidationError(Service.spec.ports[0]): unknown field "prot"' in said
    assert kubectl("apply", "-f", "-", stdin=LIST).split("\n")[:2] == ["configmap/one created", "service/two created"]
    assert "service/two unchanged" in kubectl("apply", "-f", "-", stdin=LIST)


def test_server_side_apply_by_two_managers(kubectl: Kubectl):
    """A release manager and a user upgrade the same Deployment; each has to take over what the other owns."""
    assert "serverside-applied" in kubectl("apply", "--server-side", "--field-manager=release", "-f", "-", stdin=WEB)
    mine = WEB.replace("1.27", "1.29")
    said = kubectl("apply", "--server-side", "--field-manager=user", "-f", "-", stdin=mine, fails=True)
    assert 'conflict with "release": .spec.template.spec.containers[name="main"].image' in said
    kubectl("apply", "--server-side", "--field-manager=user", "--force-conflicts", "-f", "-", stdin=mine)
    said = kubectl("apply", "--server-side", "--field-manager=release", "-f", "-", stdin=WEB, fails=True)
    assert 'conflict with "user"' in said
    without = WEB.replace('image: "nginx:1.27", ', "")
    kubectl("apply", "--server-side", "--field-manager=release", "-f", "-", stdin=without)
    shown = json.loads(kubectl("get", "deployment", "web", "-o", "json", "--show-managed-fields"))
    assert shown["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:1.29"
    owners = {
        entry["manager"]
        for entry in shown["metadata"]["managedFields"]
        if "f:image" in json.dumps(entry["fieldsV1"]) and entry["operation"] == "Apply"
    }
    assert owners == {"user"}


def test_objects_are_shown_in_every_way(kubectl: Kubectl):
    kubectl("apply", "-f", "-", stdin=WEB)
    assert "CONTAINERS   IMAGES       SELECTOR" in kubectl("get", "deployment", "web", "-o", "wide")
    assert "progressDeadlineSeconds: 600" in kubectl("get", "deployment", "web", "-o", "yaml")
    assert kubectl("get", "deploy,svc", "-o", "name").split() == ["deployment.apps/web", "service/web"]
    assert "RollingUpdateStrategy:  25% max unavailable, 25% max surge" in kubectl("describe", "deployment", "web")
    assert "Selector:                 app=web" in kubectl("describe", "service", "web")
    assert "No resources found" in kubectl("get", "pods")
    assert '"ghost" not found' in kubectl("get", "deployment", "ghost", fails=True)


def test_small_edits(kubectl: Kubectl):
    kubectl("apply", "-f", "-", stdin=WEB)
    side = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "b"}]}}}}
    kubectl("patch", "deployment", "web", "-p", json.dumps(side))
    names = "jsonpath={.spec.template.spec.containers[*].name}"
    assert sorted(kubectl("get", "deployment", "web", "-o", names).split()) == ["main", "side"]
    kubectl("patch", "deployment", "web", "--type=json", "-p", '[{"op":"replace","path":"/spec/paused","value":true}]')
    kubectl("patch", "deployment", "web", "--type=merge", "-p", '{"metadata":{"labels":{"app":null}}}')
    kubectl("label", "deployment", "web", "tier=front")
    kubectl("annotate", "deployment", "web", "note=hello")
    kubectl("set", "image", "deployment/web", "main=nginx:1.30")
    kubectl("scale", "deployment", "web", "--replicas=5")
    found = json.loads(kubectl("get", "deployment", "web", "-o", "json"))
    assert found["metadata"]["labels"] == {"tier": "front"}
    assert found["metadata"]["annotations"]["note"] == "hello"
    assert found["spec"]["replicas"] == 5
    assert found["spec"]["paused"] is True
    assert kubectl("get", "deployment", "-l", "tier=front", "-o", "name").strip() == "deployment.apps/web"


def test_typed_commands_speak_protobuf(kubectl: Kubectl):
    kubectl("create", "configmap", "settings", "--from-literal=a=b")
    kubectl("create", "secret", "generic", "token", "--from-literal=a=b")
    kubectl("create", "deployment", "quick", "--image=nginx:1", "--replicas=2", "--port=80")
    kubectl("create", "serviceaccount", "robot")
    kubectl("create", "role", "reader", "--verb=get,list", "--resource=pods")
    kubectl("create", "rolebinding", "reads", "--role=reader", "--serviceaccount=default:robot")
    kubectl("create", "job", "once", "--image=busybox")
    kubectl("create", "cronjob", "often", "--image=busybox", "--schedule=* * * * *")
    kubectl("create", "ingress", "door", "--rule=a.dev/*=web:80")
    kubectl("create", "poddisruptionbudget", "few", "--selector=app=web", "--min-available=1")
    kubectl("run", "alone", "--image=busybox", "--env=A=b", "--restart=Never")
    kubectl("expose", "deployment", "quick", "--port=80")
    kubectl("autoscale", "deployment", "quick", "--min=1", "--max=3", "--cpu-percent=70")
    assert kubectl("get", "secret", "token", "-o", "jsonpath={.data.a}") == "Yg=="
    assert kubectl("get", "deployment", "quick", "-o", "jsonpath={.spec.replicas}") == "2"
    target = "jsonpath={.spec.metrics[0].resource.target.averageUtilization}"
    assert kubectl("get", "horizontalpodautoscaler", "quick", "-o", target) == "70"
    path = kubectl("get", "ingress", "door", "-o", "jsonpath={.spec.rules[0].http.paths[0].path}")
    assert path == "/"


def test_waiting_for_a_rollout(kubectl: Kubectl):
    kubectl("apply", "-f", "-", stdin=WEB)
    assert "timed out" in kubectl("wait", "--for=condition=Available", "deploy/web", "--timeout=1s", fails=True)
    status = json.dumps({"status": AVAILABLE})
    kubectl("patch", "deployment", "web", "--subresource=status", "--type=merge", "-p", status)
    assert "condition met" in kubectl("wait", "--for=condition=Available", "deploy/web", "--timeout=60s")
    assert "successfully rolled out" in kubectl("rollout", "status", "deploy/web", "--timeout=60s")
    assert "condition met" in kubectl("wait", "--for=jsonpath={.status.readyReplicas}=2", "deploy/web", "--timeout=60s")
    assert "restarted" in kubectl("rollout", "restart", "deploy/web")


def test_deleting(kubectl: Kubectl):
    kubectl("apply", "-f", "-", stdin=WEB)
    kubectl("run", "alone", "--image=busybox")
    assert 'pod "alone" deleted' in kubectl("delete", "pod", "alone", "--now")
    kubectl("delete", "deployment", "web", "--cascade=orphan", "--wait=false")
    assert kubectl("get", "deployment", "web", "-o", "jsonpath={.metadata.finalizers}") == '["orphan"]'
    kubectl("delete", "service", "--all")
    kubectl("wait", "--for=delete", "service/web", "--timeout=60s")
    assert "not found" in kubectl("delete", "service", "web", fails=True)
    kubectl("delete", "service", "web", "--ignore-not-found")


def test_asking_the_server_about_itself(kubectl: Kubectl):
    kinds = kubectl("api-resources", "--api-group=apps", "-o", "name").split()
    assert {"deployments.apps", "replicasets.apps", "statefulsets.apps"} <= set(kinds)
    assert "networking.k8s.io/v1" in kubectl("api-versions").split()
    assert kubectl("auth", "can-i", "create", "pods").strip() == "yes"
    assert "system:masters" in kubectl("auth", "whoami")
    assert kubectl("get", "--raw", "/readyz") == "ok"
    assert "Server Version: v1." in kubectl("version")
    explained = kubectl("explain", "deployment.spec.strategy")
    assert "rollingUpdate\t<RollingUpdateDeployment>" in explained
    assert "FIELD: replicas <integer>" in kubectl("explain", "deployment.spec.replicas")


WIDGETS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.kubectl.isvc.dev}
spec:
  group: kubectl.isvc.dev
  scope: Namespaced
  names: {plural: gadgets, kind: Gadget, shortNames: [gdg], categories: [toys]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    - {name: Hidden, type: string, jsonPath: .spec.color, priority: 1}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            description: What the gadget is like.
            required: [size]
            properties:
              size: {type: integer, maximum: 5, description: How large it is.}
              color: {type: string, default: red, enum: [red, blue]}
            x-kubernetes-validations:
            - {rule: "self.color != 'blue' || self.size < 3", message: blue gadgets are small}
          status: {type: object, properties: {size: {type: integer}}}
"""
GADGET = """
apiVersion: kubectl.isvc.dev/v1
kind: Gadget
metadata: {name: g}
spec: {size: 1}
"""


def test_kinds_of_our_own(kubectl: Kubectl):
    kubectl("apply", "-f", "-", stdin=WIDGETS)
    kubectl("wait", "--for=condition=Established", "crd/gadgets.kubectl.isvc.dev", "--timeout=60s")
    served = ("api-resources", "--api-group=kubectl.isvc.dev", "-o", "name")
    wait_until(lambda: "gadgets" in kubectl(*served), "API servers list a new kind a moment after it is established")
    kubectl("apply", "-f", "-", stdin=GADGET)
    assert kubectl("get", "gdg").splitlines()[0].split() == ["NAME", "SIZE"]
    assert kubectl("get", "toys", "-o", "wide").splitlines()[0].split() == ["NAME", "SIZE", "HIDDEN"]
    assert kubectl("get", "gadget", "g", "-o", "jsonpath={.spec.color}") == "red"
    said = kubectl("apply", "-f", "-", stdin=GADGET.replace("size: 1", "size: 9"), fails=True)
    assert "spec.size: Invalid value: 9: spec.size in body should be less than or equal to 5" in said
    said = kubectl("apply", "-f", "-", stdin=GADGET.replace("size: 1", "size: 4, color: blue"), fails=True)
    assert "spec: Invalid value: blue gadgets are small" in said
    said = kubectl("apply", "-f", "-", stdin=GADGET.replace("size: 1", "size: 1, weight: 2"), fails=True)
    assert 'unknown field "spec.weight"' in said
    kubectl("scale", "gadget", "g", "--replicas=3")
    assert kubectl("get", "gadget", "g", "-o", "jsonpath={.spec.size}") == "3"
    assert "How large it is." in kubectl("explain", "gadget.spec.size")
    kubectl("delete", "gadget", "g")
