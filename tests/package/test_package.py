"""The package on its own: sdist and wheel, installed and used outside the repository; and what the image is made of."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
NOBODY = 65534
SUPPORTED = ("3.11", "3.12", "3.13")
ATTEMPTS = 5


def pythons() -> list[str]:
    """The supported versions that this machine has."""
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    others = [found for each in SUPPORTED if each != running for found in sorted(versions.glob(f"{each}.*/bin/python"))]
    return [sys.executable, *map(str, others)]


def run(*command: object, cwd: Path, **options: object) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment["PATH"] = f"{BIN}:{environment['PATH']}"
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, capture_output=True, text=True, env=environment, check=False, **options
    )  # type: ignore[call-overload]
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return f"{done.stdout}{done.stderr}"


def install(*command: object, cwd: Path) -> None:
    """Run what installs packages, several times if need be: their index may be away for some seconds."""
    for attempt in range(1, ATTEMPTS):
        with suppress(AssertionError):
            run(*command, cwd=cwd)
            return
        time.sleep(2**attempt)
    run(*command, cwd=cwd)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the sdist, so that neither lacks anything."""
    folder = tmp_path_factory.mktemp("dist")
    run(
        BIN / "uv",
        "build",
        "--quiet",
        "--no-build-isolation",
        "--python",
        sys.executable,
        "--out-dir",
        folder,
        cwd=ROOT,
    )
    [built] = folder.glob("*.whl")
    assert list(folder.glob("*.tar.gz"))
    return built


def installed(wheel: Path, python: str, folder: Path) -> Path:
    """A fresh environment with the wheel and its locked dependencies."""
    run(BIN / "uv", "venv", "--quiet", "--python", python, folder / "env", cwd=folder)
    program = folder / "env" / "bin" / "python"
    lock = ["--constraint", ROOT / "requirements-image.lock"]
    install(BIN / "uv", "pip", "install", "--quiet", "--python", program, wheel, *lock, cwd=folder)
    return folder / "env" / "bin"


@pytest.mark.parametrize("python", pythons(), ids=lambda path: str(Path(path).parents[1].name))
def test_the_wheel_works_alone(wheel: Path, python: str, tmp_path: Path):
    programs = installed(wheel, python, tmp_path)
    assert run(programs / "isvc", "--version", cwd=tmp_path).startswith("isvc")
    for program in ("isvc-manager", "llmisvc-manager", "isvc-storage-initializer"):
        assert "usage" in run(programs / program, "--help", cwd=tmp_path).lower()
    assert "kind: ClusterServingRuntime" in run(programs / "isvc", "manifests", cwd=tmp_path)
    if python != sys.executable:
        return
    home = tmp_path / "home"
    environment = {**os.environ, "ISVC_HOME": str(home)}
    with (tmp_path / "log").open("wb") as log:
        up = [str(programs / "isvc"), "up", "--port", "0", "--api-port", "0", "--dashboard-port", "0"]
        process = subprocess.Popen(up, env=environment, cwd=tmp_path, stdout=log, stderr=log)
    try:
        wait_until(lambda: "ready in" in ended_or_log(process, tmp_path / "log"), "isvc up is ready", within=120)
        kubectl = ["kubectl", "--kubeconfig", home / "kubeconfig", "get"]
        assert "kserve-sklearnserver" in run(*kubectl, "clusterservingruntimes", cwd=tmp_path)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def ended_or_log(process: subprocess.Popen[bytes], log: Path) -> str:
    text = log.read_text()
    assert process.poll() is None, text
    return text


def python_for_all() -> str:
    """An interpreter that other users can run as well, unlike one in a home folder."""
    return shutil.which("python3", path="/usr/local/bin:/usr/bin") or sys.executable


@pytest.fixture
def folder_for_all() -> Iterator[Path]:
    """One that other users may enter, unlike pytest's own, which every start of pytest closes to them."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_the_image_runs_as_anybody_on_a_read_only_root(folder_for_all: Path):
    """The steps of Containerfile, without a builder."""
    source, target = folder_for_all / "source", folder_for_all / "image"
    kept = [line[1:] for line in (ROOT / ".containerignore").read_text().splitlines() if line.startswith("!")]
    for name in kept:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        copy(ROOT / name, source / name)
    install(python_for_all(), source / "tools" / "image-root", source, target, cwd=folder_for_all)
    listed = json.loads((target / "usr" / "share" / "sbom" / "isvc.cdx.json").read_text())
    assert {"isvc", "aiohttp", "boto3"} <= {component["name"] for component in listed["components"]}
    for path in (target, *target.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~0o222)
    another = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
    for program in ("isvc-manager", "llmisvc-manager", "isvc-storage-initializer"):
        assert "usage" in run(target / "opt" / "isvc" / "bin" / program, "--help", cwd=Path("/"), **another).lower()
    assert "kind: Deployment" in run(target / "opt" / "isvc" / "bin" / "isvc", "manifests", cwd=Path("/"), **another)
