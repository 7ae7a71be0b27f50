"""Cache and queue in numbers: events through informer, queue and an empty reconcile; memory per cached object; API
requests per created child. The API server of the first two is a player in a process of its own, that has its answers
ready before the clock starts; the third runs on the embedded API server. CPU time is ours alone.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import multiprocessing
import os
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

import orjson

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests import servers
from tests.waiting import until

from isvc.engine.apply import Engine
from isvc.engine.plan import Child, Part, Plan, Want
from isvc.kube.objects import Key
from isvc.kube.resource import CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, SECRETS
from isvc.toolkit.cache import Cache
from isvc.toolkit.client import Client, kubeconfig
from isvc.toolkit.client.kubeconfig import ClusterConfig
from isvc.toolkit.controller import Controller, Watch, owner_of
from isvc.toolkit.manager import Manager
from isvc.toolkit.reads import Read

PAGE = 500


def deployment(number: int, version: int) -> dict[str, object]:
    """About 6 KB, as a Deployment of a predictor looks when it comes from a kube-apiserver."""
    env = [{"name": f"SETTING_{each}", "value": f"value of {each} for {number}"} for each in range(60)]
    fields = {"f:metadata": {"f:labels": {f"f:label-{each}": {} for each in range(30)}}, "f:spec": {"f:template": {}}}
    container = {
        "name": "kserve-container",
        "image": "kserve/sklearnserver:latest",
        "args": [f"--model_name=model-{number}", "--model_dir=/mnt/models", "--http_port=8080"],
        "env": env,
        "resources": {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"cpu": "1", "memory": "2Gi"}},
        "volumeMounts": [{"name": "kserve-provision-location", "mountPath": "/mnt/models", "readOnly": True}],
        "readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 10, "failureThreshold": 3},
        "terminationMessagePath": "/dev/termination-log",
    }
    labels = {"app": f"isvc.model-{number}", "serving.kserve.io/inferenceservice": f"model-{number}"}
    conditions = [
        {"type": kind, "status": "True", "reason": "Reason", "message": "all is well " * 8}
        for kind in ("Available", "Progressing")
    ]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": f"model-{number}-predictor",
            "namespace": f"team-{number % 20}",
            "uid": f"00000000-0000-0000-0000-{number:012}",
            "resourceVersion": str(version),
            "labels": labels,
            "annotations": {f"note-{each}": f"something worth keeping about {number}" for each in range(10)},
            "managedFields": [{"manager": name, "fieldsV1": fields} for name in ("isvc", "kube-controller-manager")],
        },
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container], "initContainers": []}},
        },
        "status": {"replicas": 1, "readyReplicas": 1, "conditions": conditions},
    }


def play(pipe: Connection, objects: int, events: int) -> None:
    """An API server that serves one list and one watch, both prepared beforehand."""
    from aiohttp import web

    pages = []
    for start in range(0, objects, PAGE):
        page = {"items": [deployment(number, number + 1) for number in range(start, min(start + PAGE, objects))]}
        more = str(start + PAGE) if start + PAGE < objects else ""
        pages.append(orjson.dumps({**page, "metadata": {"resourceVersion": str(objects), "continue": more}}))
    lines = [
        orjson.dumps({"type": "MODIFIED", "object": deployment(each % objects, objects + each + 1)}) + b"\n"
        for each in range(events)
    ]
    go = asyncio.Event()

    async def serve(request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            return web.Response(body=pages[int(request.query.get("continue", "0")) // PAGE])
        response = web.StreamResponse()
        await response.prepare(request)
        await go.wait()
        for start in range(0, len(lines), 20):
            await response.write(b"".join(lines[start : start + 20]))
        await asyncio.sleep(600)
        return response

    async def main() -> None:
        app = web.Application()
        app.router.add_get("/{path:.*}", serve)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        pipe.send((runner.addresses[0][1], sum(map(len, pages)) // objects))
        await asyncio.to_thread(pipe.recv)
        go.set()
        await asyncio.sleep(600)

    asyncio.run(main())


async def idle(controller: Controller) -> None:
    await until(lambda: not len(controller.queue) and not controller.queue.busy)


def memory() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def events_and_memory(pipe: Connection, objects: int, events: int) -> dict[str, str]:
    port, size = pipe.recv()
    reconciled = 0
    last = asyncio.Event()

    async def reconcile(key: Key) -> None:
        nonlocal reconciled
        reconciled += 1

    async with Client.connect(ClusterConfig(server=f"http://127.0.0.1:{port}")) as client:
        cache = Cache(client)
        cache.declare("bench", Read(DEPLOYMENTS))
        controller = Controller("bench", reconcile, [Watch(DEPLOYMENTS)], workers=4)
        controller.connect(cache)
        seen = 0

        def count(before: object, after: object) -> None:
            nonlocal seen
            seen += 1
            if seen == objects + events:
                last.set()

        cache.subscribe(DEPLOYMENTS, count, before=False)
        gc.collect()
        before, started = memory(), time.process_time()
        cache.start()
        await cache.wait_for_sync()
        listed = time.process_time() - started
        gc.collect()
        per_object = (memory() - before) / objects
        working = asyncio.create_task(controller.run())
        await idle(controller)
        reconciled_before, started, clock = reconciled, time.process_time(), time.perf_counter()
        pipe.send("go")
        await last.wait()
        await idle(controller)
        cpu, wall = time.process_time() - started, time.perf_counter() - clock
        controller.queue.close()
        await working
        await cache.stop()
    return {
        "object on the wire": f"{size / 1024:.1f} KiB",
        f"list of {objects:,} objects": f"{listed / objects * 1e6:.0f} µs CPU each",
        "memory per cached object": f"{per_object / 1024:.1f} KiB",
        "events through to a reconcile": f"{events / wall:,.0f} /s, {cpu / events * 1e6:.0f} µs CPU each",
        "reconciles for these events": f"{reconciled - reconciled_before:,} of {events:,}",
    }


async def requests_per_child(owners: int) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        cluster = await asyncio.to_thread(servers.start, "embedded", Path(folder))
        try:
            return await _create_children(cluster, owners)
        finally:
            await asyncio.to_thread(cluster.stop)


async def _create_children(cluster: servers.Cluster, owners: int) -> dict[str, str]:
    config = kubeconfig.load(cluster.kubeconfig)
    async with Client.connect(config) as user, Client.connect(config) as client:
        await user.create(NAMESPACES, {"metadata": {"name": "bench"}})
        cache = Cache(client)
        engine = Engine(client, cache)

        async def reconcile(key: Key) -> None:
            owner = cache.get(CONFIG_MAPS, key.name, key.namespace)
            if owner is not None:
                children = tuple(
                    Child(SECRETS, {"metadata": {"name": f"{key.name}-{each}", "namespace": "bench"}})
                    for each in ("one", "two")
                )
                await engine.apply(owner, Plan((Part("children", Want(children), frozenset([SECRETS])),)))

        watches = [Watch(CONFIG_MAPS), Watch(SECRETS, to=owner_of(CONFIG_MAPS))]
        reads = [Read(CONFIG_MAPS, namespace="bench", labels="owner"), Read(SECRETS, namespace="bench")]
        controller = Controller("bench", reconcile, watches, workers=4, reads=reads, ignore_own_writes_for=CONFIG_MAPS)
        manager = Manager(client, cache, controllers=[controller])
        running = asyncio.create_task(manager.run(handle_signals=False))
        await until(lambda: manager.ready)
        counted = 0

        def count(method: str, status: int) -> None:
            nonlocal counted
            counted += 1

        client.observe(count)
        started = time.process_time()
        for number in range(owners):
            metadata = {"name": f"owner-{number}", "labels": {"owner": ""}}
            await user.create(CONFIG_MAPS, {"metadata": metadata}, "bench")
        await until(lambda: len(cache.list(SECRETS)) == 2 * owners)
        await idle(controller)
        cpu = time.process_time() - started
        manager.stop()
        await running
    return {
        "API requests per created child": f"{counted / (2 * owners):.2f}",
        "CPU per owner with two children": f"{cpu / owners * 1e3:.1f} ms, its user's request included",
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--objects", type=int, default=10_000)
    options.add_argument("--events", type=int, default=20_000)
    options.add_argument("--owners", type=int, default=200)
    chosen = options.parse_args()
    ours, theirs = multiprocessing.Pipe()
    player = multiprocessing.get_context("spawn").Process(
        target=play, args=(theirs, chosen.objects, chosen.events), daemon=True
    )
    player.start()
    rows = asyncio.run(events_and_memory(ours, chosen.objects, chosen.events))
    player.kill()
    rows |= asyncio.run(requests_per_child(chosen.owners))
    for name, value in rows.items():
        print(f"{name:34} {value}")


if __name__ == "__main__":
    main()
