"""What clients of `isvc up` notice of its work: times at rest and while services are created, and failures.

    python bench/traffic.py [--rate 500] [--services 300] [--before PYTHON]

A prediction is asked for at a fixed rate: at rest, while services are created whose pods are simulated, during a
rolling update, while a canary goes from 10 to 100 %, and while the gateway's Envoy is killed. `--before` is the
interpreter of another checkout's environment, which is measured in the same run. Times are of a client in C (h2load),
failures of one in Python that connects anew, or, where that is said, keeps its connections.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
from gateway import program

ROOT = Path(__file__).parent.parent
ROWS = json.dumps({"instances": [[5.1, 3.5, 1.4, 0.2]]})
CANARY = (ROOT / "examples" / "iris-canary.yaml").read_text()
SIMULATED = """
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {{name: many-{number}, annotations: {{serving.kserve.io/deploymentMode: Standard}}}}
spec: {{predictor: {{containers: [{{name: kserve-container, image: "example.com/simulated:1"}}]}}}}
"""


class Machine:
    def __init__(self, python: str) -> None:
        self.killed = 0.0
        self.home = Path(tempfile.mkdtemp(prefix="isvc-bench-"))
        self.env = {**os.environ, "ISVC_HOME": str(self.home), "KUBECONFIG": str(self.home / "kubeconfig")}
        models = self.home / "volumes" / "default" / "models"
        subprocess.run([python, "-m", "isvc.local.examples", models], check=True)
        flags = ["--port", "0", "--api-port", "0", "--no-dashboard", "--simulate", "--ephemeral"]
        command = [python, "-c", "from isvc.cli import main; main()", "up", *flags]
        began = time.perf_counter()
        self.process = subprocess.Popen(command, env=self.env, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        if not any(line.startswith("ready in") for line in self.process.stdout):
            sys.exit(f"isvc up ended: {self.home}/logs")
        self.started = time.perf_counter() - began
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def kubectl(self, *words: str, text: str | None = None) -> str:
        done = subprocess.run(["kubectl", *words], env=self.env, input=text, capture_output=True, text=True, check=True)
        return done.stdout

    def create(self, number: int) -> None:
        self.kubectl("create", "-f", "-", text="---".join(SIMULATED.format(number=each) for each in range(number)))
        self.kubectl("wait", "--for=condition=Ready", "isvc", "--all", "--timeout=600s")

    def update(self) -> None:
        self.kubectl(
            "apply", "-f", "-", text=(ROOT / "examples/iris.yaml").read_text().replace("models/iris", "models/iris-v2")
        )
        self.kubectl("rollout", "status", "deploy/iris-predictor", "--timeout=300s")

    def shift(self) -> None:
        for percent in (10, 50, 100):
            self.kubectl("apply", "-f", "-", text=CANARY.replace("trafficPercent: 10", f"trafficPercent: {percent}"))
            self.kubectl("wait", "--for=condition=Ready", "isvc/iris", "--timeout=300s")
            time.sleep(2)

    def kill(self) -> None:
        envoy = next(pid for pid, _, command in self.processes() if "_bin/envoy" in command)
        time.sleep(3)
        os.kill(envoy, signal.SIGKILL)
        self.killed = time.perf_counter()
        time.sleep(3)

    def processes(self) -> list[tuple[int, int, str]]:
        """Returns what `isvc up` runs but pods: process, kilobytes of its own (Pss), command."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                command = (folder / "cmdline").read_text().replace("\0", " ")
                pss = int(re.search(r"^Pss: *(\d+)", (folder / "smaps_rollup").read_text(), re.MULTILINE)[1])  # type: ignore[index]
            except (OSError, TypeError):
                continue
            if int(folder.name) == self.process.pid or parent == self.process.pid:
                found.append((int(folder.name), pss, command))
        return found

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(60)
        shutil.rmtree(self.home, ignore_errors=True)


def latencies(url: str, rate: int, work: Callable[[], object]) -> list[float]:
    """Returns the milliseconds of requests that began while the work was done; raises if one failed."""
    path, env = program("h2load")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "body").write_text(ROWS)
        log, clients = Path(folder) / "log", 20
        flags = ["--h1", "-c", str(clients), "--rps", str(rate / clients), "-D", "900", "-d", f"{folder}/body"]
        client = subprocess.Popen([path, *flags, f"--log-file={log}", url], env=env, stdout=subprocess.DEVNULL)
        time.sleep(3)
        began = time.time()
        work()
        ended = time.time()
        client.send_signal(signal.SIGINT)
        client.kill()
        client.wait()
        rows = [line.split("\t") for line in log.read_text().splitlines() if line.count("\t") == 2]
    during = [(status, int(micros)) for start, status, micros in rows if began * 1e6 <= int(start) <= ended * 1e6]
    assert all(status == "200" for status, _ in during), {status for status, _ in during}
    return sorted(micros / 1000 for _, micros in during)


async def failures(
    url: str, rate: int, work: Callable[[], object], *, keep_alive: bool = False
) -> tuple[int, list[tuple[float, str]]]:
    """Returns how many requests were made while the work was done, and when those began that failed, and why."""
    failed: list[tuple[float, str]] = []

    async def one(session: aiohttp.ClientSession) -> None:
        began = time.perf_counter()
        try:
            async with session.post(url, data=ROWS) as answer:
                if answer.status != 200:
                    failed.append((began, f"{answer.status} {await answer.text()}"))
        except aiohttp.ClientError as error:
            failed.append((began, f"{type(error).__name__} {error}"))

    working = asyncio.create_task(asyncio.to_thread(work))
    began, count, running = time.perf_counter(), 0, set[asyncio.Task[None]]()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, force_close=not keep_alive)) as session:
        while not working.done():
            await asyncio.sleep(max(0.0, began + count / rate - time.perf_counter()))
            task = asyncio.create_task(one(session))
            running.add(task)
            task.add_done_callback(running.discard)
            count += 1
        await asyncio.gather(*running, working)
    return count, failed


def percentiles(times: list[float]) -> str:
    p50, p99 = (times[len(times) * percent // 100] for percent in (50, 99))
    return f"p50 {p50:.1f} ms, p99 {p99:.1f} ms ({len(times)} requests)"


def measure(title: str, python: str, args: Any) -> None:
    machine = Machine(python)
    try:
        print(f"{title}: ready after {machine.started:.2f} s", flush=True)
        machine.kubectl("apply", "-f", str(ROOT / "examples" / "iris.yaml"))
        machine.kubectl("wait", "--for=condition=Ready", "isvc/iris", "--timeout=120s")
        for _, pss, command in machine.processes():
            print(f"    Pss {pss // 1024} MiB: {command[-60:]}")
        url = machine.kubectl("get", "isvc", "iris", "-o", "jsonpath={.status.url}") + "/v1/models/iris:predict"
        works: list[tuple[str, Callable[[], object]]] = [
            ("at rest", lambda: time.sleep(args.seconds)),
            (f"while {args.services} services are created", lambda: machine.create(args.services)),
        ]
        for name, work in works:
            print(
                f"    {args.latency_rate}/s {name}: {percentiles(latencies(url, args.latency_rate, work))}", flush=True
            )
        changes: list[tuple[str, Callable[[], object], bool]] = [
            ("a rolling update", machine.update, False),
            ("a canary from 10 to 100 %", machine.shift, False),
        ]
        if any("_bin/envoy" in command for _, _, command in machine.processes()):
            changes.append(("a kill of Envoy", machine.kill, False))
            changes.append(("a kill of Envoy, on connections that are kept", machine.kill, True))
        for name, change, keep_alive in changes:
            count, failed = asyncio.run(failures(url, args.rate, change, keep_alive=keep_alive))
            print(f"    {args.rate}/s during {name}: {len(failed)} of {count} failed", flush=True)
            for why, times in Counter(why for _, why in failed).items():
                print(f"        {times} {why}")
            if machine.killed and failed:
                print(f"        the last began {1000 * (max(failed)[0] - machine.killed):.0f} ms after the kill")
    finally:
        machine.stop()


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--rate", type=int, default=500, help="requests a second while failures are counted")
    flags.add_argument("--latency-rate", type=int, default=100, help="requests a second while times are taken")
    flags.add_argument("--services", type=int, default=300)
    flags.add_argument("--seconds", type=float, default=20)
    flags.add_argument("--before", metavar="PYTHON", help="of another checkout's environment")
    args = flags.parse_args()
    if args.before:
        measure("before", args.before, args)
    measure("now", sys.executable, args)


if __name__ == "__main__":
    main()
