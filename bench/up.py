"""How long `isvc up` takes to be ready, an InferenceService to its first prediction, and what the gateway carries.

    python bench/up.py [--seconds 30] [--rate 200] [--before PYTHON]

`--before` is the interpreter of another checkout's environment, which is measured in the same run.
Every number is printed with the CPU seconds that it took, because a busy machine makes the clock lie.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROWS = json.dumps({"instances": [[5.1, 3.5, 1.4, 0.2]]})


def cpu_of(pid: int, *, alone: bool = False) -> float:
    """CPU seconds of a process so far, and of its children unless it is asked for alone."""
    total = 0.0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(folder.name) == pid or (int(fields[1]) == pid and not alone):
            total += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return total


class Machine:
    def __init__(self, python: str, home: Path) -> None:
        self.python = python
        self.home = home
        self.env = {**os.environ, "ISVC_HOME": str(home), "KUBECONFIG": str(home / "kubeconfig")}

    def up(self, title: str) -> None:
        began = time.perf_counter()
        program = "from isvc.cli import main; main()"
        command = [self.python, "-c", program, "up", "--port", "0", "--api-port", "0"]
        self.process = subprocess.Popen(command, env=self.env, stdout=subprocess.PIPE, text=True)
        parts = []
        for line in self.process.stdout:
            if line.startswith("ready in"):
                break
            parts.append(line.strip())
        else:
            sys.exit(f"isvc up ended: {self.home}/logs")
        print(f"{title}: {time.perf_counter() - began:.2f} s, CPU {cpu_of(self.process.pid):.2f} s")
        for part in parts:
            print(f"    {part}")

    def down(self) -> None:
        began = time.perf_counter()
        self.process.terminate()
        self.process.communicate()
        print(f"stop: {time.perf_counter() - began:.2f} s")

    def kubectl(self, *words: str, text: str | None = None) -> str:
        done = subprocess.run(["kubectl", *words], env=self.env, input=text, capture_output=True, text=True, check=True)
        return done.stdout

    def apply(self, model: str, name: str = "iris") -> None:
        manifest = (ROOT / "examples" / "iris.yaml").read_text().replace("models/iris", f"models/{model}")
        self.kubectl("apply", "-f", "-", text=manifest.replace("name: iris\n", f"name: {name}\n", 1))

    def memory(self) -> None:
        """What model servers keep to themselves: Pss counts a page that is shared by its share."""
        groups = [int(path.name) for path in (self.home / "run" / "processes").glob("[0-9]*")]
        for pid in sorted(groups):
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
            rss, pss = (int(re.search(rf"^{kind}: *(\d+)", rollup, re.MULTILINE)[1]) // 1024 for kind in ("Rss", "Pss"))
            print(f"    process {pid}: Rss {rss} MiB, Pss {pss} MiB")


def first_prediction(machine: Machine, title: str, name: str = "iris", *, exists: bool = False) -> str:
    """From the moment in which a service is applied, or `isvc up` is ready with one that exists."""
    before, began = cpu_of(machine.process.pid), time.perf_counter()
    if not exists:
        machine.apply("iris", name)
    port = asyncio.run(until_it_answers(machine, name))
    cpu = cpu_of(machine.process.pid) - before
    print(f"first prediction, {title}: {time.perf_counter() - began:.2f} s, CPU {cpu:.2f} s")
    return port


async def until_it_answers(machine: Machine, name: str) -> str:
    import aiohttp

    port = json.loads((machine.home / "run" / "up.json").read_text())["gateway"].rpartition(":")[2]
    url, headers = f"http://127.0.0.1:{port}/v1/models/{name}:predict", {"Host": f"{name}-default.localhost:{port}"}
    async with aiohttp.ClientSession() as session:
        while True:
            async with session.post(url, data=ROWS, headers=headers) as response:
                if response.status == 200:
                    return port
            await asyncio.sleep(0.02)


async def load(machine: Machine, port: str, rate: float, seconds: float) -> int:
    """Requests at a fixed rate, with a rolling update in the middle."""
    import aiohttp

    url, headers = f"http://127.0.0.1:{port}/v1/models/iris:predict", {"Host": f"iris-default.localhost:{port}"}
    times, failures = [], []

    async def one(session: aiohttp.ClientSession) -> None:
        began = time.perf_counter()
        try:
            async with session.post(url, data=ROWS, headers=headers) as response:
                body = await response.text()
                if response.status != 200:
                    failures.append(f"{response.status} {body}")
        except aiohttp.ClientError as error:
            failures.append(f"{type(error).__name__} {error}")
        times.append(time.perf_counter() - began)

    async def roll_over() -> None:
        await asyncio.sleep(seconds / 4)
        await asyncio.to_thread(machine.apply, "iris-v2")
        await asyncio.to_thread(machine.kubectl, "rollout", "status", "deploy/iris-predictor")

    before = cpu_of(machine.process.pid)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        rolling = asyncio.create_task(roll_over())
        began, running = time.perf_counter(), set()
        for number in range(int(rate * seconds)):
            await asyncio.sleep(max(0.0, began + number / rate - time.perf_counter()))
            task = asyncio.create_task(one(session))
            running.add(task)
            task.add_done_callback(running.discard)
        await asyncio.gather(*running, rolling)
    times.sort()
    cpu = (cpu_of(machine.process.pid) - before) / seconds
    print(
        f"{rate:g} requests/s for {seconds:g} s during a rolling update: {len(times)} requests, {len(failures)} failed"
    )
    p50, p99 = (1000 * times[len(times) * percent // 100] for percent in (50, 99))
    print(f"    p50 {p50:.1f} ms, p99 {p99:.1f} ms, {cpu:.2f} cores")
    for failure in failures[:5]:
        print(f"    {failure}")
    return len(failures)


def measure(python: str, rate: float, seconds: float) -> int:
    """Returns how many requests failed."""
    home = Path(tempfile.mkdtemp(prefix="isvc-bench-"))
    machine = Machine(python, home)
    try:
        models = home / "volumes" / "default" / "models"
        subprocess.run([python, "-m", "isvc.local.examples", str(models)], check=True)
        machine.up("first start")
        port = first_prediction(machine, "applied right after the first start")
        time.sleep(5)  # until the process that servers are forked from has imported what it does in its spare time
        for number in range(2, 5):
            first_prediction(machine, "applied later", f"iris-{number}")
        machine.memory()
        failed = asyncio.run(load(machine, port, rate, seconds))
        machine.down()
        machine.up("second start")
        first_prediction(machine, "of a service from before, after the start", exists=True)
        for idle in (0, 5):
            machine.kubectl("delete", "isvc", "--all")
            machine.down()
            machine.up("a start without services")
            time.sleep(idle)
            first_prediction(machine, f"applied {idle} s after a start")
        return failed
    finally:
        if machine.process.poll() is None:
            machine.down()
        shutil.rmtree(home, ignore_errors=True)


def main() -> int:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--seconds", type=float, default=30)
    flags.add_argument("--rate", type=float, default=200)
    flags.add_argument("--before", metavar="PYTHON", help="interpreter of another checkout's environment")
    args = flags.parse_args()
    failed = 0
    for python in filter(None, (args.before, sys.executable)):
        print(python)
        failed += measure(python, args.rate, args.seconds)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
