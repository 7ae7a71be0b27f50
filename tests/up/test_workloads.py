"""Jobs, CronJobs, StatefulSets, DaemonSets, LeaderWorkerSets on `isvc up`, and somebody else's chart that has some."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

import pytest
from tests.up.machine import EXAMPLES, Machine, until

from isvc.kube.objects import Object, is_being_deleted

HELM = str(Path(sys.executable).with_name("helm"))
SLEEP = "import time; time.sleep(600)"


def template(code: str, **spec: object) -> Object:
    container = {"name": "main", "image": "python:3.11", "command": ["python", "-c", code]}
    return {"spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec}}


def job(name: str, code: str, *, restart: str = "Never", **spec: object) -> Object:
    spec = {"template": template(code, restartPolicy=restart), **spec}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def workload(kind: str, name: str, code: str, **spec: object) -> Object:
    labels = {"app": name}
    pod = {"metadata": {"labels": labels}, **template(code)}
    spec = {"selector": {"matchLabels": labels}, "template": pod, **spec}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def wait(here: Machine, what: str, condition: str) -> None:
    said = here.kubectl("wait", what, f"--for={condition}", "--timeout=120s", check=False)
    assert "condition met" in said, said + here.kubectl("describe", what) + here.kubectl("get", "pods", "-o", "yaml")


def conditions(obj: Object) -> dict[str, tuple[str, str]]:
    return {each["type"]: (each["status"], each["reason"]) for each in obj["status"].get("conditions", [])}


def pods_of(here: Machine, selector: str) -> list[Object]:
    return sorted(here.get("pods", labels=selector)["items"], key=lambda pod: pod["metadata"]["name"])


def test_kubectl_creates_a_job_and_waits_for_it(here: Machine) -> None:
    here.kubectl("create", "job", "hello", "--image=python:3.11", "--", "python", "-c", "print('done')")
    wait(here, "job/hello", "condition=complete")
    assert here.kubectl("logs", "job/hello") == "done\n"
    made = here.get("job", "hello")
    assert conditions(made)["SuccessCriteriaMet"] == conditions(made)["Complete"] == ("True", "CompletionsReached")
    assert made["status"]["succeeded"] == 1
    here.kubectl("delete", "job", "hello")
    until(lambda: not pods_of(here, "job-name=hello"), "its pods to go with it")


def test_indexed_completions(here: Machine) -> None:
    code = "import os, socket; print(os.environ['JOB_COMPLETION_INDEX'])"
    here.apply(job("indexed", code, completions=3, parallelism=2, completionMode="Indexed"))
    wait(here, "job/indexed", "condition=complete")
    assert here.get("job", "indexed")["status"]["completedIndexes"] == "0-2"
    said = {here.kubectl("logs", pod["metadata"]["name"]).strip() for pod in pods_of(here, "job-name=indexed")}
    assert said == {"0", "1", "2"}


def test_a_job_gives_up(here: Machine) -> None:
    here.apply(job("hopeless", "raise SystemExit(3)", backoffLimit=1))
    here.apply(job("stubborn", "raise SystemExit(3)", backoffLimit=2, restart="OnFailure"))
    here.apply(job("late", SLEEP, activeDeadlineSeconds=1))
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}
    here.apply(job("fatal", "raise SystemExit(42)", podFailurePolicy={"rules": [rule]}))
    reasons = {
        "hopeless": "BackoffLimitExceeded",
        "stubborn": "BackoffLimitExceeded",
        "late": "DeadlineExceeded",
        "fatal": "PodFailurePolicy",
    }
    for name, reason in reasons.items():
        wait(here, f"job/{name}", "condition=failed")
        made = here.get("job", name)
        assert conditions(made)["Failed"] == conditions(made)["FailureTarget"] == ("True", reason)
    assert here.get("job", "hopeless")["status"]["failed"] == 2
    assert here.get("job", "fatal")["status"]["failed"] == 1
    until(lambda: not [pod for pod in pods_of(here, "job-name=late") if pod["status"]["phase"] == "Running"])


def test_a_deleted_pod_is_a_failure_and_is_replaced(here: Machine) -> None:
    here.apply(job("steady", SLEEP))
    first = until(lambda: [p for p in pods_of(here, "job-name=steady") if p["status"]["phase"] == "Running"])[0]
    here.kubectl("delete", "pod", first["metadata"]["name"])
    until(lambda: here.get("job", "steady")["status"].get("failed") == 1, "the lost pod to be counted")
    until(lambda: here.get("job", "steady")["status"].get("active") == 1, "another pod")
    here.kubectl("delete", "job", "steady")


def test_an_evicted_pod_can_be_told_from_one_that_failed(here: Machine) -> None:
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    here.apply(job("movable", SLEEP, backoffLimit=0, podFailurePolicy={"rules": [rule]}))

    def running() -> list[str]:
        pods = pods_of(here, "job-name=movable")
        return [uid(each) for each in pods if each["status"]["phase"] == "Running" and not is_being_deleted(each)]

    first = until(running, "its pod")
    drain = ("drain", here.get("nodes")["items"][0]["metadata"]["name"], "--pod-selector=job-name=movable")
    here.kubectl(*drain, "--dry-run=server")
    assert running() == first
    here.kubectl(*drain)
    here.kubectl("uncordon", drain[1])
    until(lambda: running() and running() != first, "another pod")
    assert "failed" not in here.get("job", "movable")["status"]
    here.kubectl("delete", "job", "movable")


def test_a_budget_lets_pods_go_one_by_one(here: Machine) -> None:
    guarded = workload("Deployment", "guarded", SLEEP, replicas=2)
    guarded["spec"]["template"]["spec"]["readinessGates"] = [{"conditionType": "example.com/open"}]
    here.apply(guarded)
    spec = {"minAvailable": "50%", "selector": {"matchLabels": {"app": "guarded"}}}
    here.apply({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "half"}, "spec": spec})

    def allowed() -> int:
        return int(here.get("pdb", "half").get("status", {}).get("disruptionsAllowed", 0))

    def evict(pod: Object) -> str:
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/eviction"
        command = ["sh", "-c", f"echo '{json.dumps(eviction)}' | kubectl create --raw {path} -f -"]
        return here.run(*command, check=False)

    def open_gates() -> list[Object]:
        opened = {"status": {"conditions": [{"type": "example.com/open", "status": "True"}]}}
        pods = until(lambda: len(found := pods_of(here, "app=guarded")) == 2 and found, "two pods")
        for each in pods:
            here.kubectl("patch", "pod", each["metadata"]["name"], "--subresource=status", "-p", json.dumps(opened))
        return list(pods)

    first, second = open_gates()
    until(lambda: allowed() == 1, "both pods to be ready")
    assert '"status":"Success"' in evict(first)
    assert "would violate the pod's disruption budget" in evict(second)
    open_gates()
    until(lambda: '"status":"Success"' in evict(second), "another pod in the place of the first")
    open_gates()
    until(lambda: allowed() == 1 and "disruptedPods" not in here.get("pdb", "half")["status"], "both to be replaced")


def test_a_suspended_job_waits_and_a_finished_one_goes_in_time(here: Machine) -> None:
    here.apply(job("paused", "print('at last')", suspend=True, ttlSecondsAfterFinished=0))
    wait(here, "job/paused", "condition=suspended")
    assert not pods_of(here, "job-name=paused")
    here.kubectl("patch", "job", "paused", "-p", '{"spec": {"suspend": false}}')
    until(lambda: "NotFound" in here.kubectl("get", "job", "paused", check=False), "the job to expire")


def test_a_cron_job_starts_jobs_and_keeps_few(here: Machine) -> None:
    spec = {
        "schedule": "@every 1s",
        "successfulJobsHistoryLimit": 1,
        "concurrencyPolicy": "Forbid",
        "jobTemplate": {"spec": {"template": template("print('tick')", restartPolicy="Never")}},
    }
    cron = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tick"}, "spec": spec}
    here.apply(cron)
    until(lambda: here.get("cronjob", "tick").get("status", {}).get("lastSuccessfulTime"), "a job to succeed")
    here.kubectl("patch", "cronjob", "tick", "-p", '{"spec": {"suspend": true}}')
    until(lambda: not here.get("cronjob", "tick")["status"].get("active"), "the last job to end")
    until(lambda: here.kubectl("get", "jobs", "-o", "name").count("/tick-") == 1, "older jobs to go")
    here.kubectl("create", "job", "tock", "--from=cronjob/tick")
    wait(here, "job/tock", "condition=complete")


def test_a_stateful_set_keeps_names_order_and_claims(here: Machine) -> None:
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
    }
    code = f"import os; open('/data/log', 'a').write(os.environ['HOSTNAME'] + chr(10)); {SLEEP}"
    wanted = workload("StatefulSet", "db", code, replicas=2, serviceName="db", volumeClaimTemplates=[claim])
    wanted["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    here.apply(wanted)
    here.kubectl("rollout", "status", "statefulset/db", "--timeout=120s")
    first, second = pods_of(here, "app=db")
    assert [pod["metadata"]["name"] for pod in (first, second)] == ["db-0", "db-1"]
    assert second["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "1"
    ready = next(each for each in first["status"]["conditions"] if each["type"] == "Ready")
    assert ready["lastTransitionTime"] <= second["metadata"]["creationTimestamp"]

    cat = ("exec", "db-1", "--", "cat", "/data/log")
    until(lambda: here.kubectl(*cat, check=False) == "db-1\n", "what the first pod wrote")
    here.kubectl("patch", "statefulset", "db", "-p", json.dumps(
        {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 1}},
                  "template": {"metadata": {"annotations": {"version": "2"}}}}}
    ))  # fmt: skip
    until(lambda: here.get("statefulset", "db")["status"].get("updatedReplicas") == 1, "one pod to be replaced")
    until(lambda: here.get("statefulset", "db")["status"].get("readyReplicas") == 2, "it to be ready")
    uids = [pod["metadata"]["uid"] for pod in pods_of(here, "app=db")]
    assert uids[0] == first["metadata"]["uid"]
    assert uids[1] != second["metadata"]["uid"]
    until(lambda: here.kubectl("exec", "db-1", "--", "cat", "/data/log") == "db-1\ndb-1\n", "what both wrote")

    here.kubectl("scale", "statefulset", "db", "--replicas=0")
    until(lambda: not pods_of(here, "app=db"), "all pods to go")
    assert {each["metadata"]["name"] for each in here.get("pvc")["items"]} >= {"data-db-0", "data-db-1"}

    here.kubectl("scale", "statefulset", "db", "--replicas=1")
    here.kubectl("rollout", "status", "statefulset/db", "--timeout=120s")
    here.kubectl("delete", "pvc", "data-db-0", "data-db-1", "--wait=false")
    here.kubectl("wait", "--for=delete", "pvc/data-db-1", "--timeout=60s")
    assert here.get("pvc", "data-db-0")["metadata"]["deletionTimestamp"], "it is in use"
    here.kubectl("delete", "statefulset", "db")
    here.kubectl("wait", "--for=delete", "pvc/data-db-0", "--timeout=60s")


def test_a_daemon_set_has_one_pod_here(here: Machine) -> None:
    here.apply(workload("DaemonSet", "agent", SLEEP))
    here.kubectl("rollout", "status", "daemonset/agent", "--timeout=120s")
    (before,) = pods_of(here, "app=agent")
    here.kubectl("rollout", "restart", "daemonset/agent")
    here.kubectl("rollout", "status", "daemonset/agent", "--timeout=120s")
    until(lambda: [pod["metadata"]["uid"] for pod in pods_of(here, "app=agent")] != [before["metadata"]["uid"]])
    assert here.kubectl("rollout", "history", "daemonset/agent").count("<none>") == 2
    here.kubectl(
        "patch", "daemonset", "agent", "-p", '{"spec": {"template": {"spec": {"nodeSelector": {"gpu": "yes"}}}}}'
    )
    until(lambda: not pods_of(here, "app=agent"), "the pod to leave a node that it is not meant for")


LWS = "leaderworkerset.sigs.k8s.io"


def leader_and_worker(here: Machine, name: str, *, without: str = "") -> tuple[Object, Object]:
    """The pods of a ready group of two, none of which has this uid."""

    def both() -> list[Object]:
        found = pods_of(here, f"{LWS}/name={name}")
        is_ready = here.get("lws", name).get("status", {}).get("readyReplicas") == 1
        return found if is_ready and len(found) == 2 and without not in map(uid, found) else []

    leader, worker = until(both, "the leader and its worker")
    return leader, worker


def uid(pod: Object) -> str:
    return str(pod["metadata"]["uid"])


@pytest.mark.parametrize(("name", "policy"), [("joint", "RecreateGroupOnPodRestart"), ("loose", "None")])
def test_a_leader_worker_set_runs_groups_and_replaces_what_is_lost(here: Machine, name: str, policy: str) -> None:
    code = f"import os; print({{k: v for k, v in os.environ.items() if k.startswith('LWS_')}}, flush=True); {SLEEP}"
    group = {"size": 2, "restartPolicy": policy, "workerTemplate": template(code)}
    spec = {"replicas": 1, "startupPolicy": "LeaderReady", "leaderWorkerTemplate": group}
    kind = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet"}
    here.apply({**kind, "metadata": {"name": name}, "spec": spec})
    leader, worker = leader_and_worker(here, name)
    wait(here, f"lws/{name}", "condition=Available")
    for index, pod in enumerate((leader, worker)):
        pod_name, labels = pod["metadata"]["name"], pod["metadata"]["labels"]
        assert pod_name == (f"{name}-0-{index}" if index else f"{name}-0")
        assert (labels[f"{LWS}/group-index"], labels[f"{LWS}/worker-index"]) == ("0", str(index))
        until(lambda pod_name=pod_name: here.kubectl("logs", pod_name), "its log")  # type: ignore[misc]
        expected = {"LWS_LEADER_ADDRESS": "127.0.0.1", "LWS_GROUP_SIZE": "2", "LWS_WORKER_INDEX": str(index)}
        assert ast.literal_eval(here.kubectl("logs", pod_name)) == expected

    here.kubectl("delete", "pod", f"{name}-0-1")
    leader_then, _ = leader_and_worker(here, name, without=uid(worker))
    assert (uid(leader_then) == uid(leader)) == (policy == "None")
    here.kubectl("delete", "lws", name)
    until(lambda: not pods_of(here, f"{LWS}/name={name}"), "its pods to go with it")


def test_a_chart_with_hooks(here: Machine) -> None:
    chart = str(EXAMPLES / "chart-with-hooks")
    said = here.run(HELM, "install", "greeter", chart, "--set", "greeting=hi", "--wait", "--timeout", "120s")
    assert "STATUS: deployed" in said
    assert "hi" in here.kubectl("logs", "job/greeter-post-install")
    assert "Succeeded" in here.run(HELM, "test", "greeter", "--timeout", "120s")
    here.run(HELM, "uninstall", "greeter", "--wait", "--timeout", "120s")
    until(lambda: not pods_of(here, "app=greeter"), "its pods to go with it")


WHO_AM_I = """
import os, subprocess
from kubernetes import client, config
config.load_incluster_config()
api = client.CoreV1Api()
print([pod.metadata.name for pod in api.list_namespaced_pod(NAMESPACE).items])
try:
    api.list_namespaced_secret(NAMESPACE)
except client.ApiException as error:
    print(error.status)
print(subprocess.run(["kubectl", "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"],
                     capture_output=True, text=True).stdout)
"""


def test_programs_in_pods_reach_the_api_server_as_their_service_account(here: Machine) -> None:
    here.kubectl("create", "serviceaccount", "reader")
    here.kubectl("create", "role", "reader", "--verb=list", "--resource=pods")
    here.kubectl("create", "rolebinding", "reader", "--role=reader", f"--serviceaccount={here.namespace}:reader")
    spec = {
        "restartPolicy": "Never",
        "serviceAccountName": "reader",
        **template(f"NAMESPACE = {here.namespace!r}\n{WHO_AM_I}")["spec"],
    }
    here.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "asking"}, "spec": spec})
    until(lambda: here.get("pod", "asking")["status"]["phase"] in ("Succeeded", "Failed"), "the pod to end")
    pods, refused, user = here.kubectl("logs", "asking").splitlines()
    assert "asking" in pods
    assert (refused, user) == ("403", f"system:serviceaccount:{here.namespace}:reader")


def test_endpoints_follow_their_service(here: Machine) -> None:
    serve = (
        "import http.server as h, os; h.HTTPServer(('127.0.0.1', int(os.environ['PORT'])), h.BaseHTTPRequestHandler)"
    )
    here.apply(workload("Deployment", "served", f"{serve}.serve_forever()"))
    here.kubectl("expose", "deployment", "served", "--port=80", "--target-port=8080")
    found = until(lambda: here.get("endpoints", "served").get("subsets"), "endpoints")
    until(lambda: here.get("endpoints", "served")["subsets"][0].get("addresses"), "a ready one")
    assert found[0]["ports"][0]["port"] != 8080
    here.kubectl("delete", "service", "served")
    until(lambda: "NotFound" in here.kubectl("get", "endpoints", "served", check=False), "the endpoints to go")
    here.kubectl("delete", "deployment", "served")
