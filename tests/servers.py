"""API servers for the cluster suites: kube-apiserver on etcd, or the embedded one. Loud when one does not start."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tests.ports import free_port

START_DEADLINE = 120.0
TOKEN = "test-admin-token"


@dataclass
class Cluster:
    """A running API server. `kubeconfig` is a file; `token` belongs to an administrator."""

    kind: str
    url: str
    token: str
    kubeconfig: Path
    dir: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def stop(self) -> None:
        for process in reversed(self.processes):
            if self.kind == "embedded":
                process.terminate()
            else:
                process.kill()  # kube-apiserver would wait for watches to end, and there is nothing to keep
        for process in reversed(self.processes):
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def start(kind: str, folder: Path, *flags: str) -> Cluster:
    """`flags` are further ones of kube-apiserver."""
    cluster = _kube_apiserver(folder, *flags) if kind == "kube-apiserver" else _embedded(folder)
    try:
        _wait_until_ready(cluster)
    except BaseException:
        cluster.stop()
        raise
    return cluster


def assets() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = Path(os.environ.get("KUBEBUILDER_ASSETS") or cache / "isvc" / "envtest-1.35.4")
    if not (folder / "kube-apiserver").exists() or not (folder / "etcd").exists():
        raise RuntimeError(f"no kube-apiserver and etcd in {folder}: run `make envtest`, or set KUBEBUILDER_ASSETS")
    return folder


def _kube_apiserver(folder: Path, *flags: str) -> Cluster:
    etcd_port, peer_port, port = free_port(), free_port(), free_port()
    key = folder / "sa.key"
    subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
    (folder / "tokens.csv").write_text(f'{TOKEN},admin,admin,"system:masters"\n')
    etcd = [
        str(assets() / "etcd"),
        f"--data-dir={folder}/etcd",
        f"--listen-client-urls=http://127.0.0.1:{etcd_port}",
        f"--advertise-client-urls=http://127.0.0.1:{etcd_port}",
        f"--listen-peer-urls=http://127.0.0.1:{peer_port}",
        "--unsafe-no-fsync",
    ]
    server = [
        str(assets() / "kube-apiserver"),
        f"--etcd-servers=http://127.0.0.1:{etcd_port}",
        f"--cert-dir={folder}/certs",
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--service-cluster-ip-range=10.0.0.0/16",
        "--service-account-issuer=https://test.local",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
        f"--token-auth-file={folder}/tokens.csv",
        "--authorization-mode=RBAC",
        "--disable-admission-plugins=ServiceAccount",
        "--allow-privileged=true",
        "--enable-priority-and-fairness=false",
        "--enable-aggregator-routing=true",  # webhooks of a Service by its EndpointSlices: there is no cluster network
        *flags,
    ]
    url = f"https://127.0.0.1:{port}"
    cluster = Cluster("kube-apiserver", url, TOKEN, _write_kubeconfig(folder, url), folder)
    cluster.processes += [_spawn(etcd, folder / "etcd.log"), _spawn(server, folder / "kube-apiserver.log")]
    return cluster


def _embedded(folder: Path) -> Cluster:
    kubeconfig = folder / "kubeconfig"
    program = Path(sys.executable).with_name("isvc")
    command = [str(program), "apiserver", "--kubeconfig", str(kubeconfig), "--dir", str(folder / "state")]
    process = _spawn(command, folder / "apiserver.log")
    deadline = time.monotonic() + START_DEADLINE
    while not (kubeconfig.exists() and kubeconfig.stat().st_size):
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            raise RuntimeError(f"the embedded API server did not start:\n{_tail(folder / 'apiserver.log')}")
        time.sleep(0.05)
    document = yaml.safe_load(kubeconfig.read_text())
    token = document["users"][0]["user"]["token"]
    return Cluster("embedded", document["clusters"][0]["cluster"]["server"], token, kubeconfig, folder, [process])


def _wait_until_ready(cluster: Cluster) -> None:
    request = urllib.request.Request(f"{cluster.url}/readyz", headers={"Authorization": f"Bearer {cluster.token}"})
    deadline = time.monotonic() + START_DEADLINE
    problem: object = "no answer"
    while time.monotonic() < deadline:
        for process in cluster.processes:
            if process.poll() is not None:
                name = Path(str(process.args[0])).name  # type: ignore[index]
                raise RuntimeError(f"{name} exited with {process.returncode}:\n{_tails(cluster.dir)}")
        try:
            with urllib.request.urlopen(request, context=ssl._create_unverified_context(), timeout=5):
                return
        except (urllib.error.URLError, OSError) as error:
            problem = error
            time.sleep(0.1)
    raise RuntimeError(f"{cluster.kind} is not ready after {START_DEADLINE:.0f} s: {problem}\n{_tails(cluster.dir)}")


def _write_kubeconfig(folder: Path, url: str) -> Path:
    path = folder / "kubeconfig"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": url, "insecure-skip-tls-verify": True}}],
        "users": [{"name": "admin", "user": {"token": TOKEN}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
    }
    path.write_text(json.dumps(document))
    return path


def _spawn(command: list[str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(
            command, stdout=output, stderr=output, stdin=subprocess.DEVNULL, preexec_fn=_die_with_parent
        )


_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None  # not after a fork, where it may wait for ever


def _die_with_parent() -> None:
    """No server outlives a test run that was killed."""
    if _LIBC is not None:
        _LIBC.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-20:])


def _tails(folder: Path) -> str:
    return "\n".join(f"--- {log.name}\n{_tail(log)}" for log in sorted(folder.glob("*.log")))


def discard(cluster: Cluster) -> None:
    cluster.stop()
    shutil.rmtree(cluster.dir, ignore_errors=True)
