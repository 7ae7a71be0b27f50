"""Environments for model servers: a virtual environment with what they require, and the image that it runs.

Each is a folder under `~/.isvc/runtimes`. The table of images in it is written last, so that an environment is either
whole or not in use. Most are for users' own servers; a recipe makes one for isvc's own, with a framework that is too
large to be an extra.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson

from isvc.insight.operations import NotPossible
from isvc.local.node.programs.images import ImageTableError, parse

_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?")
_TABLE: Final = "images.yaml"


class RuntimeFailure(NotPossible):
    """An environment cannot be made or removed; says why."""


@dataclass(frozen=True, slots=True)
class Recipe:
    requirements: str  # as in a file for pip
    image: str
    framework: str


RECIPES: Final = {
    # PyPI's wheels of PyTorch for Linux bring 2.5 GB of CUDA with them; those of its own index do without.
    "pytorch": Recipe(
        "--extra-index-url https://download.pytorch.org/whl/cpu\ntorch\nnumpy\n", "isvc/torchscriptserver", "pytorch"
    ),
}


@dataclass(frozen=True, slots=True)
class Environment:
    name: str
    image: str
    python: str
    command: tuple[str, ...]


def add(
    runtimes: Path,
    name: str,
    requirements: Sequence[Path],
    *,
    image: str = "",
    command: Sequence[str] = (),
    python: str,
    with_isvc: bool = False,
) -> Environment:
    """Makes an environment, in the place of one of that name. Raises RuntimeFailure.

    `with_isvc` lets programs in it import isvc and what it requires; `python` has to be isvc's own then.
    """
    if not _NAME.fullmatch(name):
        raise RuntimeFailure(
            f"{name!r} is no name for a runtime: it takes lower-case letters, digits, '-', '.' and '_'"
        )
    folder = runtimes / name
    (folder / _TABLE).unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        for step in _steps(folder / "venv", requirements, python):
            _run(step)
        if with_isvc:
            _lead_to_isvc(folder / "venv")
    except RuntimeFailure:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    made = Environment(name, image or name, str(folder / "venv" / "bin" / "python"), tuple(command))
    row = {"python": made.python, "command": list(made.command)}
    unfinished = folder / f"{_TABLE}.new"
    unfinished.write_bytes(orjson.dumps({"images": {made.image: row}}))
    unfinished.rename(folder / _TABLE)
    return made


def add_recipe(runtimes: Path, name: str, requirements: Sequence[Path] = ()) -> Environment:
    """Makes the environment of a recipe, which has isvc in it; `requirements` are in the place of the recipe's own."""
    recipe = RECIPES[name]
    with tempfile.TemporaryDirectory() as folder:
        own = Path(folder) / "requirements.txt"
        own.write_text(recipe.requirements)
        command = ["python", "-m", "isvc.pods.modelserver", "--host=127.0.0.1", f"--framework={recipe.framework}"]
        files = requirements or [own]
        try:
            return add(
                runtimes, name, files, image=recipe.image, command=command, python=sys.executable, with_isvc=True
            )
        except RuntimeFailure as error:
            if requirements:
                raise
            hint = f"where only PyPI can be reached, give a file: isvc runtime add {name} --requirements FILE"
            raise RuntimeFailure(f"{error}\n{hint}") from error


def environments(runtimes: Path) -> Iterator[Environment]:
    for table in sorted(runtimes.glob(f"*/{_TABLE}")):
        try:
            found = parse(table.read_text(), str(table))
        except (ImageTableError, OSError):
            continue
        for image, program in found.items():
            yield Environment(table.parent.name, image, program.python, program.command)


def remove(runtimes: Path, name: str) -> None:
    folder = runtimes / name
    if not _NAME.fullmatch(name) or not folder.is_dir():
        known = ", ".join(sorted({each.name for each in environments(runtimes)})) or "none"
        raise RuntimeFailure(f"there is no runtime {name} (there are: {known})")
    (folder / _TABLE).unlink(missing_ok=True)
    shutil.rmtree(folder)


def _steps(venv: Path, requirements: Sequence[Path], python: str) -> Iterator[list[str]]:
    """Uses uv where it is there, which is much faster, and the standard library's tools otherwise."""
    files = [word for path in requirements for word in ("--requirement", str(path))]
    beside = Path(sys.executable).with_name("uv")
    uv = shutil.which("uv") or (str(beside) if beside.exists() else None)
    if uv:
        yield [uv, "venv", "--quiet", "--clear", "--python", python, str(venv)]
        yield [uv, "pip", "install", "--quiet", "--python", str(venv / "bin" / "python"), *files]
    else:
        yield [python, "-m", "venv", "--clear", str(venv)]
        yield [str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", *files]


def _lead_to_isvc(venv: Path) -> None:
    """Makes isvc importable, after what the environment has itself."""
    packages = next((venv / "lib").glob("python*/site-packages"))
    ours = [Path(__file__).parents[2], sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    (packages / "isvc.pth").write_text("".join(f"{path}\n" for path in dict.fromkeys(map(str, ours))))


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except OSError as error:
        raise RuntimeFailure(f"{command[0]} cannot be run: {error.strerror}") from None
    if done.returncode:
        raise RuntimeFailure((done.stderr or done.stdout).strip() or f"{command[0]} failed")
