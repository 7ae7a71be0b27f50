"""What an InferenceService costs when there are many, as a Markdown table with a column for each number of services.

    python bench/scale.py --bench FOLDER --manager 'CMD' --crds FOLDER --sizes 300,1500,5000

For each number a new kube-apiserver is started, by `bench.py` of FOLDER; then services are created and made ready, the
manager is restarted, and `inferenceservice-config` is edited so that every tenth service has to change. Which objects
the edit wrote is read from the audit log: the run fails if they are of other services, or if one is missing.

Progress goes to stderr, the table to stdout after each column, so that an interrupted run leaves what it has found.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROWS: dict[str, Callable[[Any], str]] = {
    "API requests a service, until all are Ready": lambda run: f"{_until_ready(run, 'requests/isvc'):.2f}",
    "… in 5 s after that": lambda run: f"{_requests(run, 'settled'):.0f}",
    "CPU a service, until Ready, webhooks included": lambda run: f"{1000 * _until_ready(run, 'cpu_s') / run.n:.1f} ms",
    "created and Ready after": lambda run: f"{_until_ready(run, 'wall_s'):.0f} s",
    "the API server's own pace, measured at the end of the run": lambda run: (
        f"{run.figures['floor']['writes/s']:.0f} writes/s"
    ),
    "time over that of as many writes at that pace": lambda run: f"{run.figures['floor']['x_own_writes']:.2f}",
    "resident memory: at the start": lambda run: f"{run.memory['started']:.1f} MiB",
    "… all Ready": lambda run: f"{run.figures['ready']['rss_mib']:.1f} MiB",
    "… for each service more than in the column before": lambda run: _memory_of_more(run, run.smaller),
    "… after a restart": lambda run: f"{run.figures['restart']['rss_mib']:.1f} MiB",
    "restart: until it is idle": lambda run: f"{run.seconds['restart']:.1f} s",
    "… CPU": lambda run: f"{run.figures['restart']['cpu_s']:.1f} s",
    "… writes": lambda run: f"{run.writes['restart']}",
    "an edit of `inferenceservice-config` that concerns every tenth: Deployments written": lambda run: (
        f"{run.edited:,}"
    ),
    "… API requests": lambda run: f"{_requests(run, 'update'):,.0f}",
    "… until the last Deployment had changed": lambda run: f"{run.seconds['update']:.1f} s",
    "… CPU, and for each service that exists": lambda run: (
        f"{run.figures['update']['cpu_s']:.1f} s, {1000 * run.figures['update']['cpu_s'] / run.n:.2f} ms"
    ),
    "… memory at its peak": lambda run: f"{run.memory['peak']:.1f} MiB",
    "kube-apiserver: CPU a service, until Ready": lambda run: _server_cpu(run, "kube-apiserver"),
    "… memory, all Ready": lambda run: f"{run.servers['ready']['kube-apiserver rss_mib']:.0f} MiB",
    "etcd: CPU a service, until Ready": lambda run: _server_cpu(run, "etcd"),
    "… its memory, all Ready": lambda run: f"{run.servers['ready']['etcd rss_mib']:.0f} MiB",
}


def _until_ready(run: Any, figure: str) -> float:
    return float(run.figures["create"][figure] + run.figures["ready"][figure])


def _server_cpu(run: Any, server: str) -> str:
    seconds = sum(run.servers[phase][f"{server} cpu_s"] for phase in ("create", "ready"))
    return f"{1000 * seconds / run.n:.1f} ms"


def _requests(run: Any, phase: str) -> float:
    return float(run.figures[phase]["requests/isvc"] * run.n)


def _memory_of_more(run: Any, smaller: Any | None) -> str:
    if smaller is None:
        return ""
    added = run.figures["ready"]["rss_mib"] - smaller.figures["ready"]["rss_mib"]
    return f"{1024 * added / (run.n - smaller.n):.1f} KiB"


def table(runs: Sequence[Any]) -> str:
    heads = ["", *(f"{run.n:,} services" for run in runs)]
    lines = [heads, ["---"] * len(heads), *([name, *map(show, runs)] for name, show in ROWS.items())]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", type=Path, required=True)
    parser.add_argument("--manager", required=True)
    parser.add_argument("--crds", type=Path, required=True)
    parser.add_argument("--sizes", default="300,1500,5000", help="numbers of services, each a multiple of 100")
    args = parser.parse_args()
    sizes = [int(size) for size in args.sizes.split(",")]
    if any(size % 100 for size in sizes):
        parser.error("every size has to be a multiple of 100, so that the edit concerns a tenth of the services")
    sys.path.insert(0, str(args.bench))
    from scale_run import LIMIT, Scale  # it needs the path

    vars(args).update(
        llmisvc=None, mode="standard-ingress", idle=5.0, timeout=LIMIT, quiet=2.0, audit=None, logs=None, server=None
    )
    runs: list[Any] = []
    for size in sizes:
        run = Scale(argparse.Namespace(**vars(args), n=size))
        run.smaller = runs[-1] if runs else None
        began = time.monotonic()
        with contextlib.redirect_stdout(sys.stderr):
            run.run()
            print(f"{run.n:,} services took {time.monotonic() - began:.0f} s", flush=True)
        runs.append(run)
        print(f"\n{table(runs)}", flush=True)


if __name__ == "__main__":
    main()
