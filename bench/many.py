"""`isvc up` while many services are created: services a minute, memory, how long kubectl and the event loop wait.

    python bench/many.py [-n 1000] [--before PYTHON]

Pods are simulated. `--before` is the interpreter of another checkout's environment, which is measured in the same run.
Both loops are probed from inside (loop_probe.py): how late a timer of 5 ms is, how much CPU the loop spends until it
fires (which says the same on a loaded machine), and, with --stacks, what ran when that was much.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from traffic import SIMULATED

from up import cpu_of


def percentile(values: list[float], percent: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * percent / 100))]


def memory(pid: int) -> int:
    """What a process keeps to itself, in MB."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in rollup if line.startswith("Pss:")) // 1024


def title_of(pid: int) -> str:
    """The part of `isvc up` that a process is."""
    words = Path(f"/proc/{pid}/cmdline").read_text().split(chr(0))
    parts = {"apiserver": "API server", "envoy": "Envoy", "loop_probe": "controllers, node"}
    return next((title for part, title in parts.items() if any(part in word for word in words)), words[-2][-40:])


class Machine:
    def __init__(self, python: str, *, stacks: bool) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="isvc-bench-"))
        own = {"ISVC_HOME": str(self.home), "KUBECONFIG": str(self.home / "kubeconfig")}
        probe = {"PROBE": str(self.home), "PYTHONPATH": str(Path(__file__).parent)}
        self.env = {**os.environ, **own, **probe, **({"STACKS": "1"} if stacks else {})}
        flags = ["--port", "0", "--api-port", "0", "--no-dashboard", "--simulate"]
        command = [python, "-m", "loop_probe", "up", *flags]
        self.process = subprocess.Popen(command, env=self.env, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        if not any(line.startswith("ready in") for line in self.process.stdout):
            sys.exit(f"isvc up ended: {self.home}/logs")
        threading.Thread(target=self.process.stdout.read, daemon=True).start()
        config = json.loads((self.home / "kubeconfig").read_text())
        self.server = config["clusters"][0]["cluster"]["server"].partition("//")[2]
        self.headers = {"Authorization": f"Bearer {config['users'][0]['user']['token']}"}

    def connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self.server, context=ssl._create_unverified_context())

    def get(self, connection: http.client.HTTPSConnection, path: str, **headers: str) -> bytes:
        connection.request("GET", path, headers={**self.headers, **headers})
        return connection.getresponse().read()

    def wait_ready(self, number: int) -> list[float]:
        """Watches, as `kubectl get isvc -w` does, until so many services are Ready; returns when each of them was."""
        connection, times = self.connect(), {}
        connection.request("GET", "/apis/serving.kserve.io/v1beta1/inferenceservices?watch=1", headers=self.headers)
        with connection.getresponse() as events:
            while len(times) < number:
                service = json.loads(events.readline())["object"]
                conditions = service.get("status", {}).get("conditions", ())
                if any(each["type"] == "Ready" and each["status"] == "True" for each in conditions):
                    times.setdefault(service["metadata"]["name"], time.perf_counter())
        return list(times.values())

    def create(self, number: int) -> None:
        text = "---".join(SIMULATED.format(number=each) for each in range(number))
        words = ["kubectl", "create", "-f", "-"]
        subprocess.run(words, env=self.env, input=text, capture_output=True, text=True, check=True)

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()


def measure(python: str, number: int, *, stacks: bool) -> None:
    machine = Machine(python, stacks=stacks)
    try:
        waits: list[float] = []
        ended = threading.Event()
        children = subprocess.run(["pgrep", "-P", str(machine.process.pid)], capture_output=True, text=True).stdout
        processes = [machine.process.pid, *map(int, children.split())]
        probed = [pid for pid in processes if title_of(pid) in ("controllers, node", "API server")]
        for pid in probed:
            os.kill(pid, signal.SIGUSR1)
        began, before = time.perf_counter(), {pid: cpu_of(pid, alone=True) for pid in processes}

        def ask() -> None:
            connection = machine.connect()
            while not ended.wait(0.1):
                before = time.perf_counter()
                machine.get(connection, "/api/v1/namespaces/default/services?limit=5")
                waits.append(time.perf_counter() - before)

        asking = threading.Thread(target=ask)
        asking.start()
        creating = threading.Thread(target=machine.create, args=(number,))
        creating.start()
        times = machine.wait_ready(number)
        ended.set()
        asking.join()
        creating.join()
        in_a_minute = sum(each - began < 60 for each in times)
        print(f"{number} services Ready in {times[-1] - began:.0f} s, {in_a_minute} in the first minute")
        p50, p99, most = 1000 * percentile(waits, 50), 1000 * percentile(waits, 99), 1000 * max(waits)
        print(f"    a read takes {p50:.0f} ms, p99 {p99:.0f} ms, at most {most:.0f}")
        for pid in processes:
            each = 1000 * (cpu_of(pid, alone=True) - before[pid]) / number
            print(f"    {each:5.1f} ms CPU a service, {memory(pid):4} MB: {title_of(pid)}")
        for pid in probed:
            os.kill(pid, signal.SIGUSR2)
        time.sleep(75)  # until autoscalers know that there are no figures of pods that are simulated
        used = cpu_of(machine.process.pid)
        time.sleep(20)
        print(f"    idle: {100 * (cpu_of(machine.process.pid) - used) / 20:.2f} % of a core")
        machine.close()
        for file in sorted(machine.home.glob("*.json")):
            report(file.stem, json.loads(file.read_text()))
    finally:
        if machine.process.poll() is None:
            machine.close()
        shutil.rmtree(machine.home, ignore_errors=True)


def report(title: str, probe: dict[str, list[Any]]) -> None:
    late, held = ([1000 * each for each in probe[key]] for key in ("late", "held"))
    p99, over = percentile(late, 99), sum(each > 20 for each in late)
    print(f"    {title}: late by p99 {p99:.0f} ms, at most {max(late):.0f}; {over} times by more than 20 ms")
    print(f"      and works before a timer fires, for p99 {percentile(held, 99):.0f} ms, at most {max(held):.0f}")
    for stack, times_seen in probe["stacks"]:
        print(f"      {times_seen:5} {stack}")


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("-n", type=int, default=1000)
    flags.add_argument("--before", default="")
    flags.add_argument("--stacks", action="store_true")
    args = flags.parse_args()
    for title, python in (("before", args.before), ("now", sys.executable)):
        if python:
            print(f"{title}:", flush=True)
            measure(python, args.n, stacks=args.stacks)


if __name__ == "__main__":
    main()
