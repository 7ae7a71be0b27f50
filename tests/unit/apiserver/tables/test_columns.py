from __future__ import annotations

from typing import Any

import pytest

from isvc.apiserver.tables import custom, pods
from isvc.apiserver.tables.columns import duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (200, "3m20s"),
        (60 * 179, "179m"),
        (60 * 181, "3h1m"),
        (3600 * 47, "47h"),
        (3600 * 49, "2d1h"),
        (86400 * 9, "9d"),
        (86400 * 800, "2y70d"),
        (86400 * 365 * 9, "9y"),
    ],
)
def test_ages_read_as_in_kubectl(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("path", "kind", "cell"),
    [
        (".spec.replicas", "integer", 3),
        (".spec.name", "string", "x"),
        (".spec.none", "string", None),
        (".status.conditions[?(@.type=='Ready')].status", "string", "True"),
        ('.status.conditions[?(@.type=="Other")].status', "string", None),
        (".status.list[*]", "string", "a"),
        (".status.list[-1:]", "string", "b"),
        (".status.list[0]", "string", "a"),
        (".status.list", "string", '["a","b"]'),
        (".metadata.annotations.x\\.io/key", "string", "v"),
        (".metadata.labels['app.kubernetes.io/name']", "string", "n"),
        (".spec.on", "boolean", True),
        (".spec.name", "integer", None),
    ],
)
def test_printer_columns(path, kind, cell):
    obj = {
        "metadata": {"name": "o", "annotations": {"x.io/key": "v"}, "labels": {"app.kubernetes.io/name": "n"}},
        "spec": {"replicas": 3, "name": "x", "on": True},
        "status": {"conditions": [{"type": "Ready", "status": "True"}], "list": ["a", "b"]},
    }
    column = custom.columns([{"name": "C", "type": kind, "jsonPath": path}])[1]
    assert column.cell(obj) == cell


@pytest.mark.parametrize("path", [".spec[?(@.a", ".spec.list[", ".spec[?(a)]"])
def test_a_printer_column_with_a_broken_path_hides_all_of_them(path):
    printed = [
        {"name": "Good", "type": "string", "jsonPath": ".spec.a"},
        {"name": "C", "type": "string", "jsonPath": path},
    ]
    assert [column.name for column in custom.columns(printed)] == ["Name", "Age"]


@pytest.mark.parametrize(
    ("status", "text"),
    [
        ({"phase": "Pending"}, "Pending"),
        ({"phase": "Running", "containerStatuses": [{"state": {"waiting": {"reason": "ErrImage"}}}]}, "ErrImage"),
        ({"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 3}}}]}, "ExitCode:3"),
        ({"phase": "Pending", "initContainerStatuses": [{"state": {"running": {}}}]}, "Init:0/1"),
        ({"initContainerStatuses": [{"state": {"terminated": {"exitCode": 1, "reason": "Error"}}}]}, "Init:Error"),
        ({"phase": "Failed", "reason": "Evicted"}, "Evicted"),
    ],
)
def test_a_pod_in_one_word(status, text):
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{}], "initContainers": [{}]}, "status": status}
    assert pods.status(pod) == text
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert pods.status(pod) == (text if status.get("phase") == "Failed" else "Terminating")


def test_a_pod_with_a_sidecar():
    def status(name, restarts, **state):
        return {
            "name": name,
            "restartCount": restarts,
            "state": state,
            **({"ready": True} if "running" in state else {}),
        }

    init = [{"name": "side", "restartPolicy": "Always"}, {"name": "step"}]
    spec = {"containers": [{"name": "c"}], "initContainers": init}
    pod: dict[str, Any] = {"metadata": {"name": "p"}, "spec": spec, "status": {}}
    cells = {column.name: column.cell for column in pods.COLUMNS}
    assert cells["Ready"](pod) == "0/2"
    steps = [
        {**status("side", 1, running={}), "started": True},
        status("step", 4, waiting={"reason": "CrashLoopBackOff"}),
    ]
    pod["status"] = {"phase": "Pending", "initContainerStatuses": steps}
    assert [cells[name](pod) for name in ("Ready", "Status", "Restarts")] == ["1/2", "Init:CrashLoopBackOff", "5"]
    pod["status"] |= {"phase": "Running", "containerStatuses": [status("c", 2, running={})]}
    pod["status"]["conditions"] = [{"type": "Initialized", "status": "True"}]
    assert [cells[name](pod) for name in ("Ready", "Status", "Restarts")] == ["2/2", "Running", "3"]
    failed = [
        status("c", 0, terminated={"exitCode": 0, "reason": "Completed"}),
        status("d", 0, terminated={"exitCode": 2}),
    ]
    pod["status"] |= {"phase": "Failed", "containerStatuses": failed}
    assert cells["Status"](pod) == "ExitCode:2"
