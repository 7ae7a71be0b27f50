from __future__ import annotations

from isvc.local.node.pods.ephemeral import EphemeralContainers
from isvc.local.node.processes.logs import log_file
from isvc.toolkit.clock import SystemClock


def pod(*names: str, **states: dict) -> dict:
    statuses = [{"name": name, "state": state} for name, state in states.items()]
    return {
        "spec": {"ephemeralContainers": [{"name": name, "image": "busybox"} for name in names]},
        "status": {"ephemeralContainerStatuses": statuses},
    }


def test_what_ran_before_the_node_was_started_does_not_run_again(tmp_path):
    containers = EphemeralContainers(tmp_path, SystemClock())
    done, running = {"exitCode": 3}, {"startedAt": "2026-01-01T00:00:00Z"}
    states: dict[str, dict] = {
        "done": {"terminated": done},
        "ran": {"running": running},
        "waited": {"waiting": {"reason": "?"}},
    }
    assert containers.add(pod("done", "ran", "waited", "new", **states))
    assert [state.name for state in containers.waiting_states()] == ["waited", "new"]
    first, second, *_ = containers.states
    assert first.terminated == done
    assert second.terminated is not None
    assert (second.terminated["exitCode"], second.terminated["startedAt"]) == (137, running["startedAt"])


def test_each_is_added_once_and_a_refusal_is_in_its_log(tmp_path):
    containers = EphemeralContainers(tmp_path, SystemClock())
    assert containers.add(pod("a"))
    assert not containers.add(pod("a"))
    containers.refuse("not now")
    assert containers.waiting_states() == []
    assert [state.terminated and state.terminated["message"] for state in containers.states] == ["not now"]
    assert log_file(tmp_path, "a", 0).read_text().endswith(" not now\n")
    assert containers.add(pod("a", "b"))
    assert [state.name for state in containers.waiting_states()] == ["b"]
