"""Pods as processes: what a container may rely on, and what is reported when it goes wrong."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys

import pytest
from tests.up.machine import Machine, service, until

from isvc.kube.objects import Object


def pod(name: str, code: str, *, restart: str = "Always", grace: int = 1, **container) -> dict:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "restartPolicy": restart,
            "terminationGracePeriodSeconds": grace,
            "containers": [{"name": "c", "image": "python:3.11", "command": ["python", "-c", code], **container}],
        },
    }


def status(here: Machine, name: str) -> dict:
    return here.get("pod", name).get("status", {})


def container(here: Machine, name: str) -> dict:
    return (status(here, name).get("containerStatuses") or [{}])[0]


def last_end(here: Machine, name: str) -> dict:
    found = container(here, name)
    return found.get("lastState", {}).get("terminated") or found.get("state", {}).get("terminated") or {}


SERVER = "import http.server, os; http.server.HTTPServer(('127.0.0.1', int(os.environ['PORT'])), {0}).serve_forever()"
FILES = SERVER.format("http.server.SimpleHTTPRequestHandler")


def test_a_pod_waits_for_its_gates_and_others_keep_their_conditions(here):
    gated = pod("gated", "import time; time.sleep(600)")
    gated["spec"]["readinessGates"] = [{"conditionType": "example.com/checked"}]
    here.apply(gated)

    def condition(kind: str) -> tuple[str, str]:
        found = {each["type"]: each for each in status(here, "gated").get("conditions", ())}.get(kind, {})
        return found.get("status", ""), found.get("reason", "")

    until(lambda: condition("Ready") == ("False", "ReadinessGatesNotReady"), "the gate to be missed")
    opened = {"status": {"conditions": [{"type": "example.com/checked", "status": "True"}]}}
    here.kubectl("patch", "pod", "gated", "--subresource=status", "-p", json.dumps(opened))
    until(lambda: condition("Ready") == ("True", ""), "the gate to be open")
    os.kill(int(container(here, "gated")["containerID"].removeprefix("process://")), signal.SIGKILL)
    until(lambda: container(here, "gated")["restartCount"] == 1, "another start, and a status")
    assert condition("example.com/checked") == ("True", "")


def test_a_pod_waits_until_its_scheduling_gates_are_removed(here):
    gated = pod("held", "import time; time.sleep(600)")
    gated["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
    here.apply(gated)
    (scheduled,) = (each for each in status(here, "held")["conditions"] if each["type"] == "PodScheduled")
    assert (scheduled["status"], scheduled["reason"]) == ("False", "SchedulingGated")
    wait = ("wait", "--for=jsonpath={.status.phase}=Running", "pod/held")
    assert "timed out" in here.run("kubectl", *wait, "--timeout=1s", check=False)
    here.kubectl("patch", "pod", "held", "--type=json", "-p", '[{"op": "remove", "path": "/spec/schedulingGates"}]')
    here.kubectl(*wait, "--timeout=60s")


def test_what_a_container_finds(here):
    here.kubectl("create", "configmap", "settings", "--from-literal=colour=blue")
    here.kubectl("create", "secret", "generic", "keys", "--from-literal=token=t0p")
    code = (
        "import os, sys; print(os.environ['COLOUR'], os.environ['WHO'], os.environ['TOKEN'], sys.argv[1], "
        "open('/data/hello').read(), open('/settings/colour').read(), os.environ.get('HOME') is not None)"
    )
    finder = pod("finder", code, restart="Never")
    finder["spec"]["volumes"] = [
        {"name": "data", "emptyDir": {}},
        {"name": "settings", "configMap": {"name": "settings"}},
    ]
    finder["spec"]["initContainers"] = [
        {
            "name": "writer",
            "image": "python:3.11",
            "command": ["python", "-c", "open('/data/hello', 'w').write('hi')"],
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        }
    ]
    finder["spec"]["containers"][0] |= {
        "args": ["$(WHO)!"],
        "env": [
            {"name": "COLOUR", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "colour"}}},
            {"name": "WHO", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "token"}}},
        ],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}, {"name": "settings", "mountPath": "/settings"}],
    }
    here.apply(finder)
    until(lambda: status(here, "finder").get("phase") == "Succeeded", "the pod to end well")
    assert here.kubectl("logs", "finder") == "blue finder t0p finder! hi blue True\n"
    here.kubectl("delete", "pod", "finder")


def test_a_crash_is_told_with_its_last_words(here):
    here.apply(pod("crasher", "print('out of luck'); raise SystemExit(3)"))
    until(lambda: container(here, "crasher").get("state", {}).get("waiting", {}).get("reason") == "CrashLoopBackOff")
    ended = last_end(here, "crasher")
    assert (ended["exitCode"], ended["reason"], ended["message"]) == (3, "Error", "out of luck")
    assert "BackOff" in here.kubectl("describe", "pod", "crasher")
    assert "out of luck" in here.kubectl("logs", "crasher", "--previous")
    here.kubectl("delete", "pod", "crasher", "--timeout=60s")


def test_more_memory_than_the_limit_is_told(here):
    code = "import time; x = b'x' * (300 << 20); time.sleep(600)"
    here.apply(pod("hungry", code, restart="Never", resources={"limits": {"memory": "100Mi"}}))
    until(lambda: status(here, "hungry").get("phase") == "Failed", "the pod to fail")
    ended = last_end(here, "hungry")
    assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)
    assert "100Mi" in ended["message"]
    here.kubectl("delete", "pod", "hungry")


def test_liveness_restarts_and_readiness_decides_who_answers(here):
    probe = {"periodSeconds": 1, "failureThreshold": 1}
    here.apply(pod("sick", "import time; time.sleep(600)", livenessProbe={**probe, "exec": {"command": ["false"]}}))
    until(lambda: container(here, "sick").get("restartCount"), "a restart")
    assert "Liveness probe failed" in last_end(here, "sick")["message"]
    here.kubectl("delete", "pod", "sick", "--timeout=60s")

    code = SERVER.format("type('H', (http.server.BaseHTTPRequestHandler,), {'do_GET': lambda s: s.send_error(503)})")
    here.apply(pod("shy", code, readinessProbe={**probe, "httpGet": {"path": "/", "port": 8080}}))
    until(lambda: "statuscode: 503" in here.kubectl("describe", "pod", "shy"), "a failed probe")
    assert not container(here, "shy")["ready"]
    here.kubectl("delete", "pod", "shy", "--timeout=60s")


def test_services_are_reached_by_name(here):
    ready = {"tcpSocket": {"port": 8080}, "periodSeconds": 1}
    here.apply(pod("files", FILES, readinessProbe=ready))
    ports = [{"port": 80, "targetPort": 8080}]
    here.apply(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "files"},
            "spec": {"selector": {"app": "files"}, "ports": ports},
        }
    )
    here.kubectl("wait", "--for=condition=Ready", "pod/files", "--timeout=60s")
    hosts = [f"files.{here.namespace}{domain}" for domain in ("", ".svc.cluster.local")]
    code = f"import urllib.request as r\nfor host in {hosts}: print(r.urlopen('http://' + host).status)"
    asker = pod("asker", code, restart="OnFailure")
    here.apply(asker)
    until(lambda: status(here, "asker").get("phase") == "Succeeded", "the answers")
    assert here.kubectl("logs", "asker").endswith("200\n200\n")
    here.kubectl("delete", "pod,service", "--all", "--timeout=60s")


def test_what_is_missing_is_waited_for(here):
    waiter = pod("waiter", "print('there')", restart="Never", envFrom=[{"configMapRef": {"name": "later"}}])
    here.apply(waiter)

    def reported():
        return container(here, "waiter").get("state", {}).get("waiting", {}).get("message")

    assert until(reported, "what is missing") == 'configmap "later" not found'
    here.kubectl("create", "configmap", "later")
    until(lambda: status(here, "waiter").get("phase") == "Succeeded", "the pod to run")

    stranger = pod("stranger", "", restart="Never")
    stranger["spec"]["containers"][0] = {"name": "c", "image": "example.com/team/stranger:1", "args": ["hello"]}
    here.apply(stranger)
    until(lambda: "images.yaml" in str(container(here, "stranger").get("state", {}).get("waiting", {}).get("message")))
    with here.programs_of_images({"team/stranger": {"command": ["echo"]}}):
        until(lambda: status(here, "stranger").get("phase") == "Succeeded", "the pod to run")
    assert here.kubectl("logs", "stranger") == "hello\n"
    here.kubectl("delete", "pod", "waiter", "stranger")


def test_what_is_mounted_follows_what_was_deleted_and_created_again(here):
    here.kubectl("create", "configmap", "palette", "--from-literal=colour=blue")
    mounts = [{"name": "palette", "mountPath": "/palette"}]
    reader = pod("reader", "import time; time.sleep(600)", volumeMounts=mounts)
    reader["spec"]["volumes"] = [{"name": "palette", "configMap": {"name": "palette"}}]
    here.apply(reader)
    until(lambda: container(here, "reader").get("ready"), "the pod to run")
    here.kubectl("delete", "configmap", "palette")
    here.kubectl("create", "configmap", "palette", "--from-literal=colour=red")
    uid = here.get("pod", "reader")["metadata"]["uid"]
    until(lambda: (here.home / "pods" / uid / "volumes" / "palette" / "colour").read_text() == "red", "the new colour")
    here.kubectl("delete", "pod", "reader")


def test_a_process_that_does_not_want_to_end_is_made_to(here):
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready'); time.sleep(600)"
    here.apply(pod("stubborn", code))
    until(lambda: "ready" in here.kubectl("logs", "stubborn", check=False), "the process")
    pid = int(container(here, "stubborn")["containerID"].removeprefix("process://"))
    here.kubectl("delete", "pod", "stubborn", "--timeout=60s")
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_orphans_are_taken_in_and_strangers_let_go(here):
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    spec = pod("crew", stubborn)["spec"]
    labels = {"app": "crew"}
    crew: Object = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "crew"},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}},
    }

    def members() -> set[str]:
        return set(here.kubectl("get", "pods", "-l", "app=crew", "-o", "name").split())

    here.apply(crew)
    here.kubectl("rollout", "status", "deployment/crew", "--timeout=60s")
    first = members()
    here.kubectl("delete", "deployment", "crew", "--cascade=orphan", "--timeout=60s")
    here.apply(crew)
    here.kubectl("rollout", "status", "deployment/crew", "--timeout=60s")
    assert members() == first
    until(lambda: here.get("rs", labels="app=crew")["items"][0]["metadata"].get("ownerReferences"), "the adoption")

    recreate = {"spec": {"strategy": {"type": "Recreate", "rollingUpdate": None}}}
    here.kubectl("patch", "deployment", "crew", "--type=merge", "-p", json.dumps(recreate))
    here.kubectl("set", "env", "deployment/crew", "NEW=1")
    here.kubectl("rollout", "status", "deployment/crew", "--timeout=60s")
    assert not members() & first

    (patient,) = first = members()
    here.kubectl("label", patient, "app-")
    until(lambda: members() and not members() & first, "another in its place")
    until(lambda: "ownerReferences" not in here.get(patient)["metadata"], "it to be let go")
    here.kubectl("delete", "deployment", "crew", "--cascade=foreground", "--timeout=60s")
    assert members() == set()
    here.kubectl("delete", patient, "--timeout=60s")


def failure(here: Machine, name: str) -> str:
    return json.dumps(here.get("isvc", name).get("status", {}).get("modelStatus", {}).get("lastFailureInfo", {}))


def test_a_port_in_use_is_told(here):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        program = [
            sys.executable,
            "-m",
            "isvc.pods.modelserver",
            f"--http_port={taken.getsockname()[1]}",
            "--host=127.0.0.1",
        ]
        command = [*program, "--model_class=isvc.pods.modelserver:Model"]
        fixed = service("fixed", "")
        fixed["spec"]["predictor"] = {"containers": [{"name": "kserve-container", "image": "example.com/fixed"}]}
        with here.programs_of_images({"example.com/fixed": {"command": command}}):
            here.apply(fixed)
            until(lambda: "cannot listen on port" in failure(here, "fixed"), "the reason in the status")
            assert "cannot listen on port" in here.kubectl("describe", "isvc", "fixed")
    here.kubectl("delete", "isvc", "fixed")


def test_hooks_run_after_the_start_and_before_the_end(here):
    started, stopped = here.home / "started", here.home / "stopped"
    hooks = {kind: {"exec": {"command": ["touch", str(path)]}} for kind, path in
             (("postStart", started), ("preStop", stopped))}  # fmt: skip
    here.apply(pod("polite", "print('ready'); import time; time.sleep(600)", grace=20, lifecycle=hooks))
    here.kubectl("wait", "--for=condition=Ready", "pod/polite", "--timeout=60s")
    assert started.exists()
    here.kubectl("delete", "pod", "polite", "--timeout=60s")
    assert stopped.exists()

    failing = {"postStart": {"exec": {"command": ["sh", "-c", "echo no luck; exit 1"]}}}
    here.apply(pod("luckless", "import time; time.sleep(600)", lifecycle=failing))
    until(lambda: "PostStartHook failed: no luck" in last_end(here, "luckless").get("message", ""), "the reason")
    here.kubectl("delete", "pod", "luckless", "--timeout=60s")


def test_sidecars_end_with_those_they_serve(here):
    served = pod("served", "print('done')", restart="Never")
    sleeper = {"name": "beside", "image": "python", "command": ["sleep", "600"], "restartPolicy": "Always"}
    served["spec"]["initContainers"] = [sleeper]
    here.apply(served)
    until(lambda: status(here, "served").get("phase") == "Succeeded", "the pod to end well")
    until(lambda: status(here, "served")["initContainerStatuses"][0]["state"].get("terminated"), "the sidecar to end")
    assert here.kubectl("get", "pod", "served", "--no-headers").split()[1:3] == ["0/2", "Completed"]
    here.kubectl("delete", "pod", "served", "--timeout=60s")


def test_http_routes_share_traffic_by_path(here):
    ready = {"tcpSocket": {"port": 8080}, "periodSeconds": 1}
    here.apply(pod("web", FILES, readinessProbe=ready))
    spec = {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}
    here.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": spec})
    rewrite = {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}}
    rule = {
        "matches": [{"path": {"type": "PathPrefix", "value": "/deep"}}],
        "filters": [{"type": "URLRewrite", "urlRewrite": rewrite}],
        "backendRefs": [{"name": "web", "port": 80}],
    }
    here.apply(
        {
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": "HTTPRoute",
            "metadata": {"name": "web"},
            "spec": {
                "parentRefs": [{"name": "kserve-ingress-gateway", "namespace": "kserve"}],
                "hostnames": ["web.localhost"],
                "rules": [rule],
            },
        }
    )
    gateway = here.gateway

    def code(path: str) -> str:
        ask = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-H", "Host: web.localhost", f"{gateway}{path}"]
        return here.run(*ask)

    until(lambda: code("/deep/") == "200", "the route")
    assert code("/other") == "404"
    here.kubectl("delete", "pod", "web", "--timeout=60s")
    assert code("/deep/") == "503"
