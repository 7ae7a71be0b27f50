"""Parts of `isvc up` that are killed while models serve: what was acknowledged stays, and clients notice little."""

from __future__ import annotations

import itertools
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from tests.up.machine import Machine, service, until
from tests.up.test_gateway import STABLE, asked, load, url_of


def test_the_api_server_is_restarted_when_it_dies_while_models_go_on_serving(here):
    here.apply(here.example("iris.yaml"))
    here.wait_ready("iris")
    acknowledged: list[str] = []
    ended = threading.Event()

    def keep_writing() -> None:
        for number in itertools.count():
            if ended.is_set():
                return
            said = here.kubectl("create", "configmap", f"written-{number}", check=False)
            if f"configmap/written-{number} created" in said:
                acknowledged.append(f"written-{number}")

    with load(f"{url_of(here, 'iris')}/v1/models/iris:predict", clients=1) as answers, ThreadPoolExecutor(1) as pool:
        pool.submit(keep_writing)
        try:
            for _ in range(2):
                until(partial(has_grown, acknowledged, len(acknowledged) + 3), "writes")
                os.kill(api_server(here), signal.SIGKILL)
                until(partial(has_grown, acknowledged, len(acknowledged) + 3), "writes after the restart")
            here.apply(service("second", "pvc://models/iris"))
            here.wait_ready("second")
        finally:
            ended.set()
    assert set(answers) == {(200, STABLE)}, answers
    kept = {item["metadata"]["name"] for item in here.get("configmaps")["items"]}
    assert kept >= set(acknowledged)
    here.kubectl("delete", "isvc", "iris", "second")


def has_grown(items: list[str], size: int) -> bool:
    return len(items) >= size


def api_server(here: Machine) -> int:
    [found] = here.processes(b"isvc.local.api_server_program")
    return found


def test_envoy_is_started_again_when_it_dies_and_status_says_so(here):
    here.apply(here.example("iris.yaml"))
    here.wait_ready("iris")
    clients = 4
    with load(f"{url_of(here, 'iris')}/v1/models/iris:predict", clients) as answers:
        until(lambda: answers[200, STABLE] > 20, "answers")
        [dead] = here.processes(b"_bin/envoy")
        os.kill(dead, signal.SIGKILL)
        until(lambda: here.processes(b"_bin/envoy") not in ([dead], []), "another Envoy")
        asked(answers, 50)
    failed = {answer: count for answer, count in answers.items() if answer != (200, STABLE)}
    assert all(isinstance(answer, str) for answer in failed), answers  # connections that broke
    assert sum(failed.values()) <= clients, answers  # what was under way
    assert "Envoy died, and was started again" in here.isvc("status").stdout
    here.kubectl("delete", "isvc", "iris")
