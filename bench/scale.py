"""What an InferenceService costs when there are many: memory, CPU, time to Ready, a restart, and an edit of the
configuration that touches every tenth.

    python bench/scale.py --bench FOLDER --manager 'CMD' -n 5000

Built on `bench.py` of FOLDER, which starts a real kube-apiserver. The API server's own pace is measured with the first
300 services' children, written straight to it.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TENTH = 10
FLOOR = 300
NOTE = "bench.example/note"


def bench_of(folder: Path) -> Any:
    """The module `bench`, which lies outside of this project."""
    sys.path.insert(0, str(folder))
    return importlib.import_module("bench")


def scale_bench(module: Any) -> Any:
    class Services(module.InferenceServices):  # type: ignore[misc]
        """Every tenth carries an annotation, which its children get unless the configuration says otherwise."""

        def service(self, i: int) -> dict[str, Any]:
            made: dict[str, Any] = super().service(i)
            if i % TENTH == 0:
                made["metadata"]["annotations"] = {NOTE: "kept"}
            return made

        def created(self) -> bool:
            return all(_count(self.bench.kube, path) >= self.bench.n for path in CHILDREN)

    class Scale(module.Bench):  # type: ignore[misc]
        def __init__(self, args: argparse.Namespace) -> None:
            super().__init__(args)
            self.kinds = Services(self)

        def update(self) -> None:
            """Instead of an edit of all services: one of the configuration."""
            section = json.dumps({"serviceAnnotationDisallowedList": [NOTE]})
            config = {"apiVersion": "v1", "kind": "ConfigMap"}
            config["metadata"] = {"name": "inferenceservice-config", "namespace": "kserve"}  # type: ignore[assignment]
            self.kube.patch(config, {"data": {"inferenceService": section}})
            self._until(lambda: not any(map(_has_note, self.kube.list(*module.DEPLOYMENT))))

        def delete(self) -> None:
            """Left out: the garbage collector of the cluster, not the manager, has the work."""

        def floor(self, floors: list[Any]) -> None:
            super().floor(floors[:FLOOR])
            pace = self.figures["floor"]["writes/s"]
            both = self.figures["create"]["wall_s"] + self.figures["ready"]["wall_s"]
            own = self.writes["create"] + self.writes["ready"]
            print(f"x_own_writes {both * pace / own:.2f} ({both:.0f} s, {own} writes, {pace} writes/s)")

        def _start_controllers(self) -> None:
            super()._start_controllers()
            print(f"started  {self._rss():.1f} MiB", flush=True)

        def _until(self, done: Callable[[], bool]) -> None:
            while not done():
                time.sleep(max(0.2, self.n / 1000))  # looking costs the API server more the more there are

    return Scale


CHILDREN = (
    "/apis/apps/v1/deployments",
    "/apis/autoscaling/v2/horizontalpodautoscalers",
)


def _count(kube: Any, path: str) -> int:
    page = kube.request("GET", f"{path}?limit=1")
    return len(page["items"]) + int(page["metadata"].get("remainingItemCount") or 0)


def _has_note(deployment: dict[str, Any]) -> bool:
    return NOTE in (deployment["spec"]["template"]["metadata"].get("annotations") or {})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", type=Path, required=True)
    parser.add_argument("--manager", required=True)
    parser.add_argument("--crds", type=Path, required=True)
    parser.add_argument("-n", type=int, default=300)
    args = parser.parse_args()
    vars(args).update(
        llmisvc=None, mode="standard-ingress", idle=5.0, timeout=3600, quiet=2.0, audit=None, logs=None, server=None
    )
    scale_bench(bench_of(args.bench))(args).run()


if __name__ == "__main__":
    main()
