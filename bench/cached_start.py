"""How long a service takes to be Ready on `isvc up`, without a model cache and with one, and what its source is asked.

The model is scikit-learn's of the examples beside a file of zeros, in a tar archive on a web server of this machine.

    bench/cached_start.py [--mebibytes 1024] [--rounds 3]
"""

from __future__ import annotations

import argparse
import json
import sys
import tarfile
import tempfile
import threading
import time
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.up.machine import EXAMPLES, Machine, running

from isvc.local import examples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isvc.kube.objects import Object

SOURCE = "gs://kfserving-examples/models/sklearn/1.0/model"


class Site(SimpleHTTPRequestHandler):
    """A folder over HTTP, which counts what it is asked."""

    requests = 0

    def do_GET(self) -> None:
        type(self).requests += 1
        super().do_GET()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Site, directory=str(folder)))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/model.tar"
    server.shutdown()


def pack(model: Path, folder: Path, mebibytes: int) -> None:
    padding = folder / "padding.bin"
    with padding.open("wb") as file:
        file.truncate(mebibytes << 20)
    with tarfile.open(folder / "model.tar", "w") as archive:
        archive.add(model, model.name)
        archive.add(padding, padding.name)
    padding.unlink()


def time_service(here: Machine, name: str, uri: str) -> float:
    """Returns the seconds from `kubectl apply` until the service is Ready; it is deleted with its pods."""
    model = {"modelFormat": {"name": "sklearn"}, "storageUri": uri}
    service: Object = {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService"}
    service |= {"metadata": {"name": name}, "spec": {"predictor": {"model": model}}}
    begin = time.monotonic()
    here.apply(service)
    here.wait_ready(name)
    seconds = time.monotonic() - begin
    here.kubectl("delete", "isvc", name)
    here.kubectl("wait", "--for=delete", "pod", "-l", f"serving.kserve.io/inferenceservice={name}", "--timeout=60s")
    return seconds


def measure(here: Machine, title: str, uri: str, rounds: int) -> None:
    before = Site.requests
    took = [time_service(here, f"{title}-{number}", uri) for number in range(rounds)]
    said = ", ".join(f"{seconds:.1f}" for seconds in took)
    print(f"{title:8} Ready after {said} s; {Site.requests - before} requests for the model", flush=True)


def run(here: Machine, uri: str, rounds: int) -> None:
    measure(here, "warm-up", uri, 1)
    measure(here, "plain", uri, rounds)
    here.apply((EXAMPLES / "local-model-cache.yaml").read_text().replace(SOURCE, uri).replace("10Mi", "2Gi"))
    begin, before = time.monotonic(), Site.requests
    here.kubectl("wait", "--for=jsonpath={.status.copies.available}=1", "localmodelcache/iris", "--timeout=110s")
    print(f"the cache is there after {time.monotonic() - begin:.1f} s; {Site.requests - before} requests")
    measure(here, "cached", uri, rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mebibytes", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        here = Machine(folder / "home")
        here.claim.mkdir(parents=True)
        examples.train(here.claim)
        pack(here.claim / "iris" / "model.joblib", folder, given.mebibytes)
        with serve(folder) as uri, running(here):
            print(json.dumps({"mebibytes": given.mebibytes, "rounds": given.rounds}))
            run(here, uri, given.rounds)


if __name__ == "__main__":
    main()
