"""Has Python programs in pods listen on the pod's own ports, and on this machine alone, whatever they were written for.

A model server of KServe's `kserve` package listens on every address, and for gRPC on port 8081 unless a flag says
otherwise: several of them on one machine would share that port, and others could reach it. Python imports this module
at its start, since its folder is in the PYTHONPATH of pods. It adjusts uvicorn, grpcio and the Kubernetes clients as
they are imported, and uses the standard library alone, for it runs in any version of Python.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

_LOOPBACK = "127.0.0.1"
_EVERYWHERE = ("0.0.0.0", "::", "[::]", "")  # noqa: S104 - what is replaced


def _local_port(port: int) -> int:
    """Returns the pod's port on this machine; any free one for a port that the pod did not ask for."""
    ports = {int(name): int(local) for name, local in json.loads(os.environ.get("ISVC_PORTS", "{}")).items()}
    return port if port in ports.values() else ports.get(port, 0)


def _adjust_uvicorn(module: ModuleType) -> None:
    original = module.Config.__init__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if self.host in _EVERYWHERE and self.fd is None and self.uds is None:
            self.host = _LOOPBACK
            self.port = _local_port(self.port) or self.port

    module.Config.__init__ = init


def _adjust_grpc(module: ModuleType) -> None:
    for name in ("add_insecure_port", "add_secure_port"):
        setattr(module.Server, name, _listening_here(getattr(module.Server, name)))


def _listening_here(original: Callable[..., int]) -> Callable[..., int]:
    def add_port(self: Any, address: str, *args: Any) -> int:
        host, _, port = address.rpartition(":")
        if host in _EVERYWHERE and port.isdigit():
            address = f"{_LOOPBACK}:{_local_port(int(port))}"
        return original(self, address, *args)

    return add_port


def _adjust_kubernetes(module: ModuleType) -> None:
    """Points to the folder of the pod that has the token and authority of its service account."""
    mounts = json.loads(os.environ.get("ISVC_MOUNTS", "{}"))
    if account := mounts.get("/var/run/secrets/kubernetes.io/serviceaccount"):
        vars(module)["SERVICE_TOKEN_FILENAME"] = os.path.join(account, "token")
        vars(module)["SERVICE_CERT_FILENAME"] = os.path.join(account, "ca.crt")


_ADJUST = {
    "uvicorn.config": _adjust_uvicorn,
    "grpc.aio._server": _adjust_grpc,
    "kubernetes.config.incluster_config": _adjust_kubernetes,
    "kubernetes_asyncio.config.incluster_config": _adjust_kubernetes,
}


class _Finder:
    """Finds modules as ever, and adjusts those of the table once they are loaded."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        spec = importlib.machinery.PathFinder.find_spec(name, path, target) if name in _ADJUST else None
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            load = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                load(module)
                _ADJUST[name](module)

            loader.exec_module = exec_module
        return spec


def _run_the_next() -> None:
    """Runs the sitecustomize that this one hides, which systems and users may have."""
    here = os.path.dirname(os.path.abspath(__file__))
    others = [folder for folder in sys.path if os.path.abspath(folder) != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if __name__ == "sitecustomize":
    sys.meta_path.insert(0, _Finder())
    _run_the_next()
