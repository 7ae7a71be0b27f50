"""How long the pod webhook takes: pods at a steady rate, thousands of services in memory, a real kube-apiserver behind.

The webhook runs in a process of its own, as it does in a cluster, and reads each pod's service account and secret from
the kube-apiserver. Reviews are sent on a schedule that does not wait for answers; a latency counts from the moment a
review was due, so that a stall is seen by every review that it delays.

    bench/pod_webhook.py [--services 2000] [--rate 100] [--seconds 20]
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import gc
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import orjson
import yaml
from tests.servers import Cluster, discard, start

from isvc.api.resources import CLUSTER_STORAGE_CONTAINERS, INFERENCE_SERVICES
from isvc.kube.objects import Object
from isvc.kube.resource import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    NAMESPACES,
    SECRETS,
    SERVICE_ACCOUNTS,
    Resource,
)
from isvc.serving import annotations as names
from isvc.toolkit.cache import Cache
from isvc.toolkit.client import Client, kubeconfig
from isvc.toolkit.manager import Manager
from isvc.toolkit.reads import Read
from isvc.toolkit.webhook import WebhookServer, mutating
from isvc.webhooks.pods import PATH, READS, PodMutator

NAMESPACE = "models"
CRDS = Path(__file__).parents[1] / "manifests" / "crds" / "full"


def definitions(folder: Path) -> list[Object]:
    wanted = ("inferenceservices", "clusterstoragecontainers")
    documents = [each for path in sorted(folder.rglob("*.yaml")) for each in yaml.safe_load_all(path.read_text())]
    found = [each for each in documents if each and each["kind"] == "CustomResourceDefinition"]
    return [each for each in found if each["spec"]["names"]["plural"] in wanted]


async def fill(cluster: Cluster, services: int, crds: Path) -> None:
    """The objects that pods refer to."""
    async with Client.connect(kubeconfig.load(cluster.kubeconfig)) as client:
        for definition in definitions(crds):
            await client.create(CUSTOM_RESOURCE_DEFINITIONS, definition)
        for name in ("kserve", NAMESPACE):
            await client.create(NAMESPACES, {"metadata": {"name": name}})
        await client.create(CONFIG_MAPS, _placed("kserve", "inferenceservice-config", data=_settings()))
        keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
        await client.create(SECRETS, _placed(NAMESPACE, "keys", stringData=keys))
        await client.create(SERVICE_ACCOUNTS, _placed(NAMESPACE, "default", secrets=[{"name": "keys"}]))
        await _until_served(client)
        storage = {"container": {"name": "storage-initializer"}, "supportedUriFormats": [{"prefix": "s3://"}]}
        container = {"metadata": {"name": "default"}, "spec": storage}
        await client.create(CLUSTER_STORAGE_CONTAINERS, _typed(CLUSTER_STORAGE_CONTAINERS, container))
        for first in range(0, services, 50):
            some = range(first, min(first + 50, services))
            await asyncio.gather(*(client.create(INFERENCE_SERVICES, _service(number)) for number in some))


async def _until_served(client: Client) -> None:
    for _ in range(600):
        try:
            await client.list(INFERENCE_SERVICES)
            await client.list(CLUSTER_STORAGE_CONTAINERS)
        except Exception:
            await asyncio.sleep(0.1)
        else:
            return
    raise RuntimeError("the kinds are not served")


def _placed(namespace: str, name: str, **fields: Any) -> Object:
    return {"metadata": {"name": name, "namespace": namespace}, **fields}


def _settings() -> dict[str, str]:
    s3 = {"s3AccessKeyIDName": "AWS_ACCESS_KEY_ID", "s3SecretAccessKeyName": "AWS_SECRET_ACCESS_KEY"}
    return {"credentials": orjson.dumps({"s3": s3}).decode()}


def _service(number: int) -> Object:
    model = {"modelFormat": {"name": "sklearn"}, "storageUri": f"s3://models/{number}"}
    predictor = {"model": model, "logger": {"mode": "all", "url": "http://sink"}}
    return _typed(INFERENCE_SERVICES, _placed(NAMESPACE, f"service-{number}", spec={"predictor": predictor}))


def _typed(resource: Resource, obj: Object) -> Object:
    return {"apiVersion": resource.api_version, "kind": resource.kind, **obj}


def serve(config: str, certificates: str, address: Any) -> None:
    """The webhook's process; tells its port."""
    import uvloop

    async def run() -> None:
        async with Client.connect(kubeconfig.load(config)) as client:
            cache = Cache(client)
            cache.declare("pods", Read(CONFIG_MAPS, namespace="kserve"), *READS)
            server = WebhookServer(
                0, certificates, {PATH: mutating(PodMutator(cache, client, "kserve"))}, host="127.0.0.1"
            )
            manager = Manager(client, cache, webhooks=server)
            running = asyncio.create_task(manager.run())
            while not manager.ready:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            address.send((server.port, len(cache.list(INFERENCE_SERVICES))))
            await running

    uvloop.run(run())


def review(number: int, services: int) -> bytes:
    service = f"service-{number % services}"
    uri = f"s3://models/{number % services}"
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{service}-predictor-{number}",
            "labels": {names.SERVICE: service, "component": "predictor"},
            "annotations": {names.SOURCE_URI: uri, names.LOGGER: "true", names.LOGGER_MODE: "all"},
        },
        "spec": {
            "containers": [
                {
                    "name": "kserve-container",
                    "image": "kserve/sklearnserver",
                    "args": ["--model_name", service, "--model_dir", "/mnt/models"],
                    "ports": [{"containerPort": 8080}],
                    "readinessProbe": {"httpGet": {"path": f"/v1/models/{service}", "port": 8080}},
                }
            ]
        },
    }
    request = {"uid": str(number), "operation": "CREATE", "namespace": NAMESPACE, "object": pod}
    return orjson.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})


async def load(port: int, rate: int, seconds: float, services: int) -> list[float]:
    """Latencies in milliseconds."""
    import aiohttp

    latencies: list[float] = []
    connector = aiohttp.TCPConnector(ssl=False, limit=0)
    async with aiohttp.ClientSession(f"https://127.0.0.1:{port}", connector=connector) as session:

        async def ask(number: int, due: float) -> None:
            headers = {"Content-Type": "application/json"}
            async with session.post(PATH, data=review(number, services), headers=headers) as response:
                answer = orjson.loads(await response.read())["response"]
            latencies.append((loop.time() - due) * 1000)
            patch = orjson.loads(base64.b64decode(answer["patch"]))
            assert answer["allowed"]
            assert any("initContainers" in operation["path"] for operation in patch)

        loop = asyncio.get_running_loop()
        for number in range(20):  # connections and code paths are warm in a running cluster
            await ask(number, loop.time())
        latencies.clear()
        gc.collect()
        gc.freeze()
        began = loop.time()
        asked = []
        for number in range(int(rate * seconds)):
            due = began + number / rate
            await asyncio.sleep(max(0.0, due - loop.time()))
            asked.append(asyncio.create_task(ask(number, due)))
        await asyncio.gather(*asked)
    return latencies


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--services", type=int, default=2000)
    parser.add_argument("--rate", type=int, default=100, help="pods a second")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--crds", type=Path, default=CRDS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cluster = start("kube-apiserver", Path(folder))
        try:
            measure(cluster, options)
        finally:
            discard(cluster)


def measure(cluster: Cluster, options: argparse.Namespace) -> None:
    asyncio.run(fill(cluster, options.services, options.crds))
    certificates = cluster.dir / "webhook"
    certificates.mkdir()
    _certify(certificates)
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=serve, args=(str(cluster.kubeconfig), str(certificates), theirs))
    process.start()
    try:
        port, cached = ours.recv()
        used, waited = _cpu(process.pid), _waited(process.pid)
        latencies = sorted(asyncio.run(load(port, options.rate, options.seconds, options.services)))
        used, waited = _cpu(process.pid) - used, _waited(process.pid) - waited
    finally:
        process.terminate()
        process.join()
    spread = statistics.quantiles(latencies, n=1000)
    print(f"{len(latencies)} pods at {options.rate}/s, {cached} services in memory, load {os.getloadavg()[0]:.1f}")
    print(f"latency ms: p50 {spread[499]:.2f}  p90 {spread[899]:.2f}  p99 {spread[989]:.2f}  max {latencies[-1]:.2f}")
    cpu, wait = (1000 * seconds / len(latencies) for seconds in (used, waited))
    print(f"the webhook's process, ms a pod: CPU {cpu:.2f}, waiting for a CPU {wait:.2f}")


def _cpu(pid: int | None) -> float:
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _waited(pid: int | None) -> float:
    """Seconds that a process was ready to run while others had the CPUs: what a busy machine adds to latencies."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9


def _certify(folder: Path) -> None:
    from tests.unit.pods.storage_initializer.sites import private_ca

    private_ca(folder)


if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    started = time.monotonic()
    main()
    print(f"took {time.monotonic() - started:.0f} s")
