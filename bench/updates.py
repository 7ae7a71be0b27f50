"""How long a new spec of many InferenceServices takes, beside what the API server alone takes for it.

    python bench/updates.py --bench FOLDER --manager 'CMD' --crds FOLDER [-n 300] [--rounds 8]

All rounds are on one kube-apiserver, started by `bench.py` of FOLDER, for the speed of a machine changes within
minutes. In each round one environment variable changes on all services, until every Deployment carries it, and then
the floor is taken: as many services' children written straight to the API server. At the end the manager and its
webhooks go, and the same edits and Deployments are written by nobody but this program, as often as there were rounds.

An update ends with the last Deployment's answer, by the audit log. `bench.py` looks every 0.2 s and longer, which is
given beside it.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

Object = dict[str, Any]
WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


class Rounds:
    """Takes the place of three phases of a run of `bench.py`: of its update, its end and its floor."""

    def __init__(self, bench: Any, run: Any, rounds: int) -> None:
        self._bench, self._run, self._rounds = bench, run, rounds
        self._updates, self._looks, self._floors = list[float](), list[float](), list[float]()
        run.update, run.floor, run.delete = self.update, self.write_alone, lambda: None

    def update(self) -> None:
        run, floors = self._run, self._run.kinds.floors()
        for number in range(self._rounds):
            offset = run._audit_size()
            self._looks.append(_seconds(lambda number=number: self._roll_out(f"round-{number}")))
            time.sleep(5)  # statuses and earlier specs gave way, and are written now
            self._updates.append(_seconds_by_log(run.cluster.audit_log, offset))
            self._floors.append(_seconds(lambda: run.each(self._write, floors)))
            run.each(self._remove, floors)
            update, floor = self._updates[-1], self._floors[-1]
            print(f"  update {update:.2f} s, floor {floor:.2f} s: {update / floor:.2f}", flush=True)

    def write_alone(self, _: list[list[Object]]) -> None:
        """Writes what a round does without a manager, and prints the result of all."""
        run = self._run
        run._stop_controllers()
        for kind in WEBHOOKS:
            for each in run.kube.list("admissionregistration.k8s.io/v1", kind):
                run.kube.delete(each)
        time.sleep(2)  # until the API server has heard of it
        alone = [_seconds(lambda number=number: self._write_updates(number)) for number in range(self._rounds)]
        pace = statistics.median(self._floors)
        for name, seconds in (("update", self._updates), ("update, as bench.py sees it,", self._looks)):
            ratios = [a / b for a, b in zip(seconds, self._floors, strict=True)]
            print(f"{name} over floor: {_spread(ratios)}")
        print(f"the same writes alone over floor: {_spread([each / pace for each in alone])}")

    def _roll_out(self, value: str) -> None:
        run = self._run
        run.each(lambda i: run.client().patch(run.kinds.service(i), _change(value)), range(run.n))
        run._until(lambda: sum(_has(value, each) for each in run.kube.list(*self._bench.DEPLOYMENT)) >= run.n)

    def _write_updates(self, number: int) -> None:
        """Writes services and Deployments one after the other, each in one request, as they are in a round."""
        version, kind = self._bench.ISVC

        def write(deployment: Object) -> None:
            client, name = self._run.client(), deployment["metadata"]["name"].removesuffix("-predictor")
            metadata = {"name": name, "namespace": deployment["metadata"]["namespace"]}
            client.patch({"apiVersion": version, "kind": kind, "metadata": metadata}, _change(f"alone-{number}"))
            container = deployment["spec"]["template"]["spec"]["containers"][0]
            container["env"] = [*container.get("env", ()), {"name": "ALONE", "value": str(number)}]
            client.request("PUT", client.path(deployment), deployment)

        self._run.each(write, self._run.kube.list(*self._bench.DEPLOYMENT))

    def _write(self, objects: Sequence[Object]) -> None:
        """Writes a service's children and what a Deployment says of itself, as `bench.py` does."""
        deployment = {key: objects[0][key] for key in ("apiVersion", "kind", "metadata")}
        for obj in objects:
            self._run.client().create(obj)
        for generation in (1, 2):
            status = {"status": {"observedGeneration": generation}}
            self._run.client().patch(deployment, status, subresource="status")

    def _remove(self, objects: Sequence[Object]) -> None:
        for obj in objects:
            self._run.client().delete(obj)


def _change(value: str) -> Object:
    return {"spec": {"predictor": {"model": {"env": [{"name": "BENCH", "value": value}]}}}}


def _seconds(phase: Callable[[], None]) -> float:
    began = time.monotonic()
    phase()
    return time.monotonic() - began


def _seconds_by_log(audit_log: Path, offset: int) -> float:
    """Returns the time from the first edit of a service to the answer to the last update of a Deployment."""
    with audit_log.open() as log:
        log.seek(offset)
        calls = [*map(json.loads, log)]
    edits = _times(calls, "inferenceservices", "patch", "requestReceivedTimestamp")
    return max(_times(calls, "deployments", "update", "stageTimestamp")) - min(edits)


def _times(calls: Sequence[Object], resource: str, verb: str, field: str) -> Iterator[float]:
    for call in calls:
        if call["verb"] == verb and (call.get("objectRef") or {}).get("resource") == resource:
            yield datetime.fromisoformat(call[field]).timestamp()


def _has(value: str, deployment: Object) -> bool:
    containers = deployment["spec"]["template"]["spec"]["containers"]
    return any(each.get("value") == value for container in containers for each in container.get("env") or ())


def _spread(ratios: Sequence[float]) -> str:
    return f"{statistics.median(ratios):.2f} in the middle, {min(ratios):.2f} to {max(ratios):.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", type=Path, required=True)
    parser.add_argument("--manager", required=True)
    parser.add_argument("--crds", type=Path, required=True)
    parser.add_argument("-n", type=int, default=300, help="number of services")
    parser.add_argument("--rounds", type=int, default=8)
    args = parser.parse_args()
    sys.path.insert(0, str(args.bench))
    bench = importlib.import_module("bench")
    vars(args).update(
        llmisvc=None, mode="standard-ingress", idle=5.0, timeout=600.0, quiet=2.0, audit=None, logs=None, server=None
    )
    run = bench.Bench(args)
    Rounds(bench, run, args.rounds)
    run.run()


if __name__ == "__main__":
    main()
