"""What all suites share: an API server for those that need one, chosen with --cluster, one per xdist worker."""

from __future__ import annotations

import fcntl
import logging
import os
import re
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from random import Random
from urllib.request import Request, urlopen

import pytest
from hypothesis import HealthCheck, settings

from tests.fuzzing import examples
from tests.servers import Cluster, discard, start
from tests.skips import pytest_runtest_makereport

__all__ = ["pytest_runtest_makereport"]  # a hook of pytest's

FOREIGN = {"KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "POD_NAMESPACE", "ISVC_HOME"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--cluster",
        choices=("embedded", "kube-apiserver"),
        default="embedded",
        help="the API server that cluster suites run on",
    )
    parser.addoption("--every-profile", action="store_true", help="play all recorded cases on this API server")
    parser.addoption("--record", action="store_true", help="write tests/golden/recordings anew")
    parser.addoption("--shuffle", metavar="SEED", help="run files, and the tests of each, in a random order")
    parser.addoption("--owners", type=int, default=200, help="how many owners the engine has to keep children for")


def pytest_configure() -> None:
    """Nothing depends on who runs the tests: neither on the machine's speed nor on the environment of a shell.

    Properties are about results: on a busy machine an example may take as long as it likes. With CI in the environment
    they are tried with the same examples at every run.
    """
    settings.register_profile(
        "isvc",
        max_examples=examples(),
        deadline=None,
        derandomize=bool(os.environ.get("CI")),
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("isvc")
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name in FOREIGN:
            del os.environ[name]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """All workers have to come to the same order."""
    if seed := config.getoption("--shuffle"):
        random = Random(seed)
        places = {path: random.random() for path in dict.fromkeys(item.path for item in items)}
        items.sort(key=lambda item: (places[item.path], random.random()))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object | None:
    from tests.scheduling import Scheduling

    return Scheduling(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The models of the examples, as `isvc up` puts them into its claim, trained once for all workers."""
    from isvc.local.examples import make_adapter, place_llm, train

    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "models"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            unfinished = folder.with_suffix(".new")
            train(unfinished)
            place_llm(unfinished)
            make_adapter(unfinished)
            unfinished.rename(folder)
    return folder


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A running API server, started when the first test asks for it; tests keep apart by namespace."""
    running = start(request.config.getoption("--cluster"), Path(tmp_path_factory.mktemp("cluster")))
    yield running
    discard(running)


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[object]:
    """A client of the cluster, as its administrator."""
    from isvc.toolkit.client import Client, kubeconfig

    async with Client.connect(kubeconfig.load(cluster.kubeconfig)) as connected:
        yield connected


@pytest.fixture
async def namespace(client, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """A namespace of the test's own, in which no service is left."""
    from isvc.kube.resource import NAMESPACES
    from tests.burial import bury

    stem = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:40].strip("-")
    name = f"{stem}-{uuid.uuid4().hex[:8]}"
    await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    await bury(client, name)


@pytest.fixture(scope="module")
def s3_endpoint() -> Iterator[str]:
    """A server that speaks S3, for programs that read models and for those that write logs."""
    from moto.server import ThreadedMotoServer  # a second to import

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    urlopen(Request(f"http://{host}:{port}/moto-api/reset", method="POST")).close()  # its buckets outlive it
    server.stop()
