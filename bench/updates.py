"""How long a new spec of many InferenceServices takes, beside what the API server alone takes for it.

    python bench/updates.py --bench FOLDER --manager 'CMD' --crds FOLDER [-n 300] [--rounds 8]

All rounds are on one kube-apiserver, started by `bench.py` of FOLDER, for the speed of a machine changes within
minutes. In each round one environment variable changes on all services, until every Deployment carries it, and then
the floor is taken: as many services' children written straight to the API server. At the end the manager and its
webhooks go, and the same edits and Deployments are written by nobody but this program, as often as there were rounds.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Object = dict[str, Any]
WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


def updates_of(bench: Any, rounds: int) -> type:
    """Returns the benchmark, which is made of the classes of `bench.py`."""

    class Updates(bench.Bench):  # type: ignore[misc]
        def update(self) -> None:
            """All rounds."""
            self.updates, self.floors = list[float](), list[float]()
            floors = self.kinds.floors()
            for number in range(rounds):
                self.updates.append(_seconds(lambda number=number: self.roll_out(f"round-{number}")))
                time.sleep(5)  # statuses and earlier specs gave way, and are written now
                self.floors.append(_seconds(lambda: self.each(self.write, floors)))
                self.each(self.remove, floors)
                times = self.updates[-1] / self.floors[-1]
                print(f"  update {self.updates[-1]:.2f} s, floor {self.floors[-1]:.2f} s: {times:.2f}", flush=True)

        def delete(self) -> None:
            """Left out."""

        def floor(self, _: list[list[Object]]) -> None:
            """Instead of the floor, of which there are many: the same writes without a manager, and the result."""
            self._stop_controllers()
            for kind in WEBHOOKS:
                for each in self.kube.list("admissionregistration.k8s.io/v1", kind):
                    self.kube.delete(each)
            time.sleep(2)  # until the API server has heard of it
            alone = [_seconds(lambda number=number: self.write_updates(number)) for number in range(rounds)]
            pace = statistics.median(self.floors)
            print(f"update over floor: {_spread([a / b for a, b in zip(self.updates, self.floors, strict=True)])}")
            print(f"the same writes alone over floor: {_spread([each / pace for each in alone])}")

        def roll_out(self, value: str) -> None:
            change = {"spec": {"predictor": {"model": {"env": [{"name": "BENCH", "value": value}]}}}}
            self.each(lambda i: self.client().patch(self.kinds.service(i), change), range(self.n))
            self._until(lambda: sum(_has(value, each) for each in self.kube.list(*bench.DEPLOYMENT)) >= self.n)

        def write_updates(self, number: int) -> None:
            """Writes services and Deployments one after the other, each in one request, as they are in a round."""
            change = {"spec": {"predictor": {"model": {"env": [{"name": "BENCH", "value": f"alone-{number}"}]}}}}

            def write(deployment: Object) -> None:
                name, namespace = deployment["metadata"]["name"], deployment["metadata"]["namespace"]
                metadata = {"name": name.removesuffix("-predictor"), "namespace": namespace}
                self.client().patch({"apiVersion": bench.ISVC[0], "kind": bench.ISVC[1], "metadata": metadata}, change)
                container = deployment["spec"]["template"]["spec"]["containers"][0]
                container["env"] = [*container.get("env", ()), {"name": "ALONE", "value": str(number)}]
                self.client().request("PUT", self.client().path(deployment), deployment)

            self.each(write, self.kube.list(*bench.DEPLOYMENT))

        def write(self, objects: Sequence[Object]) -> None:
            """Writes a service's children and what a Deployment says of itself, as `bench.py` does."""
            deployment = {key: objects[0][key] for key in ("apiVersion", "kind", "metadata")}
            for obj in objects:
                self.client().create(obj)
            for generation in (1, 2):
                self.client().patch(deployment, {"status": {"observedGeneration": generation}}, subresource="status")

        def remove(self, objects: Sequence[Object]) -> None:
            for obj in objects:
                self.client().delete(obj)

    return Updates


def _seconds(phase: Callable[[], None]) -> float:
    began = time.monotonic()
    phase()
    return time.monotonic() - began


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
    updates_of(bench, args.rounds)(args).run()


if __name__ == "__main__":
    main()
