"""Services on `isvc up` that sleep: what the first request after a sleep takes, and whether one is lost.

    python bench/sleep.py [--services 200] [--minutes 10] [--rate 50] [--seed 1]

First as many services as are asked for sleep in Standard mode, then in Knative mode: each gets one request, one after
another, and, when all sleep again, all at the same time. Then requests go to a few services in Standard mode at a fixed
rate, for as many minutes: in bursts with pauses about as long as it takes to fall asleep. Meanwhile every few
seconds Envoy or a model server is killed, or a pod is deleted, at once or with time to end.

Only what was under way in a process when it was killed may fail; all else makes the command fail.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import select
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import aiohttp
from traffic import ROWS, Machine

COOLDOWN = 6
STANDARD = {
    "serving.kserve.io/deploymentMode": "Standard",
    "serving.kserve.io/autoscalerClass": "keda",
    "isvc.dev/http-metric": f"concurrency=4,cooldown={COOLDOWN}",
}
KNATIVE = {
    "serving.kserve.io/deploymentMode": "Knative",
    "autoscaling.knative.dev/window": f"{COOLDOWN}s",
}
PODS = ("get", "pods", "-l", "serving.kserve.io/inferenceservice", "-o", "json")
LONGEST = aiohttp.ClientTimeout(total=300)


class Asked(NamedTuple):
    """One request: to whom, when, and what went wrong, if anything did."""

    service: str
    began: float
    ended: float
    problem: str = ""

    @property
    def seconds(self) -> float:
        return self.ended - self.began


class Death(NamedTuple):
    """A process that was killed: whose, and between which moments it ended."""

    service: str | None  # None for Envoy, which has requests of all
    first: float
    last: float

    def explains(self, asked: Asked) -> bool:
        return self.service in (None, asked.service) and asked.began <= self.last and asked.ended >= self.first


def manifests(names: list[str], annotations: dict[str, str]) -> str:
    """Returns services of the iris model that have no pods while nobody asks."""
    model = {"modelFormat": {"name": "sklearn"}, "storageUri": "pvc://models/iris"}
    head = {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService"}
    spec = {"predictor": {"minReplicas": 0, "maxReplicas": 2, "model": model}}
    items = [{**head, "metadata": {"name": name, "annotations": annotations}, "spec": spec} for name in names]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


@contextmanager
def services(machine: Machine, names: list[str], annotations: dict[str, str]) -> Iterator[dict[str, str]]:
    """Yields the URLs of services once each of them has answered for itself and sleeps."""
    machine.kubectl("create", "-f", "-", text=manifests(names, annotations))
    machine.kubectl("wait", "--for=condition=Ready", "isvc", "--all", "--timeout=1800s")
    until_asleep(machine)
    found = json.loads(machine.kubectl("get", "isvc", "-o", "json"))["items"]
    yield {each["metadata"]["name"]: each["status"]["url"] for each in found}
    machine.kubectl("delete", "isvc", "--all", "--timeout=600s")


def until_asleep(machine: Machine) -> None:
    while pods(machine):
        time.sleep(1)


def pods(machine: Machine) -> list[dict[str, object]]:
    return list(json.loads(machine.kubectl(*PODS))["items"])


async def ask(session: aiohttp.ClientSession, name: str, url: str) -> Asked:
    began, problem = time.perf_counter(), ""
    try:
        async with session.post(f"{url}/v1/models/{name}:predict", data=ROWS) as answer:
            body = await answer.text()
            if answer.status != 200 or "predictions" not in body:
                problem = f"{answer.status} {body}"
    except (aiohttp.ClientError, TimeoutError) as error:
        problem = f"{type(error).__name__} {error}"
    return Asked(name, began, time.perf_counter(), problem)


def session() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, force_close=True), timeout=LONGEST)


async def ask_in_turns(urls: dict[str, str]) -> list[Asked]:
    async with session() as asking:
        return [await ask(asking, *each) for each in urls.items()]


async def ask_at_once(urls: dict[str, str]) -> list[Asked]:
    async with session() as asking:
        return [*await asyncio.gather(*(ask(asking, *each) for each in urls.items()))]


def wake(machine: Machine, title: str, annotations: dict[str, str], number: int) -> int:
    """Prints what it takes to wake services of a mode; returns how many requests were lost."""
    lost = 0
    with services(machine, [f"asleep-{each}" for each in range(number)], annotations) as urls:
        for how, asking in (("in turns", ask_in_turns), ("all at once", ask_at_once)):
            answers = asyncio.run(asking(urls))
            lost += report(f"{title}, {number} services woken {how}", answers, [])
            until_asleep(machine)
    return lost


def report(title: str, answers: list[Asked], deaths: list[Death]) -> int:
    """Prints times and failures; returns the number of those that nothing excuses."""
    times = sorted(each.seconds for each in answers if not each.problem)
    shares = ", ".join(
        f"p{share} {times[min(len(times) - 1, len(times) * share // 100)]:.2f}" for share in (50, 90, 99)
    )
    failed = [each for each in answers if each.problem]
    excused = [each for each in failed if any(death.explains(each) for death in deaths)]
    print(f"{title}: {shares}, at most {times[-1]:.2f} s", flush=True)
    print(f"    {len(answers)} requests, {len(failed)} failed, {len(excused)} of these in a process that was killed")
    lost = [each for each in failed if each not in excused]
    for problem, count in Counter(each.problem for each in lost).most_common(10):
        print(f"    lost: {count} {problem}")
    for each in lost[:10]:
        near = [f"{each.began - death.last:+.3f} s {death.service or 'Envoy'}" for death in deaths[:]]
        closest = min(near, key=lambda text: abs(float(text.split()[0])), default="no death")
        print(f"    lost: {each.service} took {each.seconds:.2f} s, began {closest}")
    return len(lost)


@dataclass
class Trouble:
    """Kills something every few seconds, in a thread of its own, and remembers when what was dead."""

    machine: Machine
    chance: random.Random
    pause: float
    deaths: list[Death] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    over: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        ways: list[Callable[[], bool]] = [self.envoy, self.server, self.pod_at_once, self.pod_with_time]
        while not self.over.wait(self.pause):
            way = self.chance.choice(ways)
            with suppress(ProcessLookupError, StopIteration):
                self.counts[way.__name__] += way()

    def envoy(self) -> bool:
        self._kill(next(pid for pid, _, command in self.machine.processes() if "_bin/envoy" in command), None)
        return True

    def server(self) -> bool:
        if found := self._pod():
            self._kill(found.process, found.service)
        return found is not None

    def pod_at_once(self) -> bool:
        if found := self._pod():
            with _descriptor(found.process) as process:
                self.machine.kubectl("delete", "pod", found.name, "--force", "--grace-period=0", "--ignore-not-found")
                _wait(process)
                ended = time.perf_counter()
                self.deaths.append(Death(found.service, ended - 1.0, ended))
        return found is not None

    def pod_with_time(self) -> bool:
        if found := self._pod():
            self.machine.kubectl("delete", "pod", found.name, "--wait=false", "--ignore-not-found")
        return found is not None

    def _kill(self, pid: int, service: str | None) -> None:
        with _descriptor(pid) as process:
            first = time.perf_counter()
            signal.pidfd_send_signal(process, signal.SIGKILL)
            _wait(process)
            self.deaths.append(Death(service, first, time.perf_counter()))

    def _pod(self) -> Server | None:
        return self.chance.choice([*map(server_of, pods(self.machine))] or [None])


class Server(NamedTuple):
    """A pod, and the process of its model server."""

    name: str
    service: str
    process: int


def server_of(pod: dict) -> Server | None:  # type: ignore[type-arg]
    metadata = pod["metadata"]
    started = [each.get("containerID") or "" for each in pod["status"].get("containerStatuses") or ()]
    pid = next((text.rpartition("/")[2] for text in started if text), "")
    return Server(metadata["name"], metadata["labels"]["serving.kserve.io/inferenceservice"], int(pid)) if pid else None


@contextmanager
def _descriptor(pid: int) -> Iterator[int]:
    process = os.pidfd_open(pid)
    try:
        yield process
    finally:
        os.close(process)


def _wait(process: int) -> None:
    """Returns when the process has ended."""
    select.select([process], [], [])


async def ask_in_bursts(urls: dict[str, str], rate: float, seconds: float, chance: random.Random) -> list[Asked]:
    """Asks at a fixed rate; each service is asked for a while, then not for about as long as it takes to sleep."""
    running, answers = set[asyncio.Task[Asked]](), list[Asked]()
    awake_until = dict.fromkeys(urls, 0.0)
    asleep_until = {name: chance.uniform(0, COOLDOWN) for name in urls}
    began, count = time.perf_counter(), 0

    def ended(task: asyncio.Task[Asked]) -> None:
        running.discard(task)
        answers.append(task.result())

    async with session() as asking:
        while (now := time.perf_counter() - began) < seconds:
            for name in urls:
                if awake_until[name] <= now and asleep_until[name] <= now:
                    awake_until[name] = now + chance.uniform(0.1, COOLDOWN)
                    asleep_until[name] = awake_until[name] + chance.uniform(COOLDOWN - 1, 2 * COOLDOWN)
            asked = [name for name in urls if awake_until[name] > now]
            name = chance.choice(asked or [min(urls, key=asleep_until.__getitem__)])
            task = asyncio.create_task(ask(asking, name, urls[name]))
            running.add(task)
            task.add_done_callback(ended)
            count += 1
            await asyncio.sleep(max(0.0, began + count / rate - time.perf_counter()))
        await asyncio.gather(*running)
    return answers


def endure(machine: Machine, args: argparse.Namespace) -> int:
    """Prints what clients notice of kills while services sleep and wake; returns how many requests were lost."""
    chance = random.Random(args.seed)
    with services(machine, [f"dozing-{each}" for each in range(args.dozing)], STANDARD) as urls:
        trouble = Trouble(machine, random.Random(args.seed), args.pause)
        thread = threading.Thread(target=trouble.run)
        thread.start()
        try:
            answers = asyncio.run(ask_in_bursts(urls, args.rate, 60 * args.minutes, chance))
        finally:
            trouble.over.set()
            thread.join()
        events = json.loads(machine.kubectl("get", "events", "-o", "json"))["items"]
        wakes = sum(each.get("count") or 1 for each in events if each["reason"] == "KEDAScaleTargetActivated")
        print(f"{wakes} wakes; killed or deleted: {dict(trouble.counts)}")
        return report(f"{args.rate:g} requests a second for {args.minutes:g} minutes", answers, trouble.deaths)


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--services", type=int, default=200, help="that are woken in each mode; 0 for none")
    flags.add_argument("--minutes", type=float, default=10, help="of requests and kills; 0 for none")
    flags.add_argument("--rate", type=float, default=50, help="requests a second, then")
    flags.add_argument("--dozing", type=int, default=8, help="services that these go to")
    flags.add_argument("--pause", type=float, default=5, help="seconds between two kills")
    flags.add_argument("--seed", type=int, default=1)
    args = flags.parse_args()
    machine, lost = Machine(sys.executable), 0
    try:
        print(f"load of the machine: {os.getloadavg()[0]:.1f}", flush=True)
        modes = [("Standard mode", STANDARD), ("Knative mode", KNATIVE)] if args.services else []
        works = [partial(wake, machine, title, annotations, args.services) for title, annotations in modes]
        works += [partial(endure, machine, args)] if args.minutes else []
        lost = sum(work() for work in works)
    finally:
        machine.stop()
    sys.exit(f"{lost} requests were lost" if lost else 0)


if __name__ == "__main__":
    main()
