"""The program: KServe's flags, models loaded before the port opens, workers, and an orderly end.

A port that answers means a model that is loaded, so the plainest TCP probe is a true readiness probe. On SIGTERM
running requests are answered and idle connections closed before the process ends.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from isvc.pods import process
from isvc.pods.modelserver import mlserver
from isvc.pods.modelserver.errors import ModelFileError
from isvc.pods.modelserver.model import Model
from isvc.pods.process import GRACE

if TYPE_CHECKING:
    from grpc import aio

    from isvc.pods.modelserver.app import Server
    from isvc.pods.modelserver.frameworks import TabularModel
    from isvc.pods.modelserver.predictor import Predictor
    from isvc.pods.modelserver.repository import Repository

log = logging.getLogger("isvc.pods.modelserver")


def parser() -> argparse.ArgumentParser:
    flags = argparse.ArgumentParser(prog="python -m isvc.pods.modelserver", description=__doc__, allow_abbrev=False)
    flags.add_argument("--model_name", default="model", help="name of the model in the paths")
    flags.add_argument("--model_dir", default="/mnt/models", help="folder that holds the model file")
    flags.add_argument("--http_port", type=int, default=int(os.environ.get("PORT", "8080")), help="port to listen on")
    flags.add_argument("--grpc_port", type=int, default=_pod_port("8081"),
                       help="port for the v2 protocol over gRPC; 0 for none")  # fmt: skip
    flags.add_argument("--host", default=os.environ.get("ISVC_HOST", "0.0.0.0"), help="address to listen on")  # noqa: S104
    flags.add_argument("--workers", type=int, default=1, help="number of server processes")
    flags.add_argument("--max_threads", type=int, default=4, help="threads that predict, per process")
    flags.add_argument("--nthread", type=int, default=1, help="threads of one xgboost or lightgbm prediction")
    flags.add_argument("--framework", help="sklearn, xgboost, lightgbm, onnx, mlflow, pmml or pytorch")
    flags.add_argument(
        "--multi_model",
        action="store_true",
        default=os.environ.get("ISVC_MULTI_MODEL") == "true",
        help="start without a model; each is loaded from a folder of its own in --model_dir when it is asked for",
    )
    flags.add_argument("--model_class", help="a custom model: FILE.py:Class or package.module:Class")
    flags.add_argument("--predictor_host", help="host of the predictor behind this transformer")
    flags.add_argument("--predictor_protocol", "--protocol", default="v1", choices=["v1", "v2"],
                       help="protocol in which the predictor is asked")  # fmt: skip
    flags.add_argument("--predictor_use_ssl", type=_boolean, default=False, help="ask it over HTTPS")
    flags.add_argument("--predictor_request_timeout_seconds", type=float, default=600, help="how long it may take")
    flags.add_argument("--timeout-keep-alive", dest="keep_alive", type=float, default=65,
                       help="seconds after which an idle connection is closed")  # fmt: skip
    flags.set_defaults(**mlserver.defaults(os.environ))
    return flags


def main(argv: Sequence[str] | None = None) -> int:
    process.set_up_logs()
    args, unknown = parser().parse_known_args(argv)
    if unknown:
        log.info("flags without effect here: %s", " ".join(unknown))
    try:
        ModelServer(args).start([] if args.multi_model else [_model(args)])
    except (ModelFileError, OSError) as error:
        log.error("%s", error)
        process.write_termination_message(str(error))
        return 1
    return 0


class ModelServer:
    def __init__(self, args: argparse.Namespace | None = None) -> None:
        self.args = args or parser().parse_known_args()[0]

    def start(self, models: Sequence[Model]) -> None:
        """Serves until SIGTERM or SIGINT. With several workers each loads its own copy and shares the port."""
        if not logging.getLogger().handlers:
            process.set_up_logs()
        listener = process.bind(self.args.host, self.args.http_port)
        if self.args.workers > 1 and _fork_workers(self.args.workers):
            return
        for model in models:
            if not model.ready and not model.load():
                raise ModelFileError(f"Model with name {model.name} is not ready.")
        asyncio.run(self._serve(models, listener))

    async def _serve(self, models: Sequence[Model], listener: socket.socket) -> None:
        from concurrent.futures import ThreadPoolExecutor

        from aiohttp import web

        from isvc.pods.modelserver.app import Server

        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(self.args.max_threads, "predict"))
        predictor = self._predictor()
        for model in models:
            model.predictor = model.predictor or predictor
        server = Server(models, _version(), _repository(self.args) if self.args.multi_model else None)
        runner = web.AppRunner(
            server.application(), keepalive_timeout=self.args.keep_alive, access_log=None, shutdown_timeout=GRACE
        )
        await runner.setup()
        stop = process.stop_on_signals()
        over_grpc = await self._serve_grpc(server) if self.args.grpc_port else None
        listener.listen(1024)
        await web.SockSite(runner, listener).start()
        log.info("serving %s on port %s", ", ".join(m.name for m in models), listener.getsockname()[1])
        await stop.wait()
        server.draining = True
        if over_grpc is not None:
            await over_grpc.stop(GRACE)
        await runner.cleanup()
        if predictor:
            await predictor.close()

    async def _serve_grpc(self, server: Server) -> aio.Server:
        try:
            from isvc.pods.modelserver import grpc_service
        except ImportError as error:
            raise ModelFileError(f"--grpc_port needs grpcio ({error}): pip install 'isvc[grpc]'") from None
        return await grpc_service.serve(server, self.args.host, self.args.grpc_port)

    def _predictor(self) -> Predictor | None:
        if not self.args.predictor_host:
            return None
        from isvc.pods.modelserver.predictor import Predictor

        return Predictor(
            self.args.predictor_host,
            self.args.predictor_protocol,
            tls=self.args.predictor_use_ssl,
            timeout=self.args.predictor_request_timeout_seconds,
        )


def _model(args: argparse.Namespace) -> Model:
    if args.model_class:
        return _custom(args.model_class)(args.model_name)
    return _framework(args)(args.model_name, args.model_dir, args.nthread)


def _framework(args: argparse.Namespace) -> type[TabularModel]:
    from isvc.pods.modelserver.formats import FRAMEWORKS

    if args.framework not in FRAMEWORKS:
        raise ModelFileError(f"--framework is one of {', '.join(FRAMEWORKS)}, not {args.framework}")
    return FRAMEWORKS[args.framework]


def _repository(args: argparse.Namespace) -> Repository:
    from isvc.pods.modelserver.repository import Repository

    return Repository(_framework(args), args.model_dir, args.nthread)


def _custom(spec: str) -> type[Model]:
    where, _, name = spec.rpartition(":")
    try:
        if where.endswith(".py"):
            found = importlib.util.spec_from_file_location(Path(where).stem, where)
            assert found is not None
            assert found.loader is not None
            module = importlib.util.module_from_spec(found)
            found.loader.exec_module(module)
        else:
            module = importlib.import_module(where)
        model: type[Model] = getattr(module, name)
    except (ImportError, AttributeError, OSError, ValueError, SyntaxError) as error:
        raise ModelFileError(f"--model_class={spec} does not load: {error}") from error
    return model


def _fork_workers(count: int) -> bool:
    """Returns True in the parent once all workers have ended; False in each worker. One that fails ends them all."""
    children: set[int] = set()
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            return False
        children.add(pid)

    stopping = False

    def forward(number: int, _frame: object) -> None:
        nonlocal stopping
        stopping = True
        for pid in children:
            os.kill(pid, number)

    signal.signal(signal.SIGTERM, forward)
    signal.signal(signal.SIGINT, forward)
    failed = False
    while children:
        pid, status = os.wait()
        children.discard(pid)
        if status and not stopping:  # one that is to stop may be killed while it still loads
            failed = True
            forward(signal.SIGTERM, None)
    if failed:
        sys.exit(1)
    return True


def _pod_port(port: str) -> int:
    """Returns where a port of the pod is on this machine, if the pod has it; 0 if not, and on a cluster."""
    return int(json.loads(os.environ.get("ISVC_PORTS") or "{}").get(port, 0))


def _boolean(text: str) -> bool:
    return text.lower() in ("y", "yes", "t", "true", "on", "1")


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("isvc")
    except PackageNotFoundError:
        return ""
