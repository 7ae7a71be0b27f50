"""How a container starts here: its local program, its command line, its environment, its working folder."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from isvc.kube.objects import Object, annotations_of, dig, name_of, namespace_of
from isvc.kube.quantity import Quantity
from isvc.local.node import python_path
from isvc.local.node.containers.sandbox import Sandbox, private_folders
from isvc.local.node.containers.translate import Translation
from isvc.local.node.environment import Sources, container_env, expand_words, inherited_variables
from isvc.local.node.processes.process import CannotStart, Reaper
from isvc.local.node.programs.images import ImageTable, Program
from isvc.local.node.programs.warm import WarmServers
from isvc.local.node.sandbox.policy import Policy
from isvc.local.node.volumes.folders import mounts
from isvc.local.node.volumes.tokens import ACCOUNT_PATH, write_kubeconfig
from isvc.serving.annotations import PULLER
from isvc.toolkit.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerServices:
    """What a container needs of its node."""

    images: ImageTable
    reaper: Reaper
    warm: WarmServers
    clock: Clock
    env: Mapping[str, str]  # the node's own additions
    sandbox: Sandbox | None = None


@dataclass(frozen=True, slots=True)
class PodContext:
    """What every container of a pod shares."""

    pod: Object
    folder: Path
    volumes: Mapping[str, Path]
    sources: Sources
    ports: Mapping[int, int]
    node: ContainerServices
    touch: Callable[[], None]  # the pod's status may have changed
    event: Callable[[str, str, str], None]  # type, reason, message


@dataclass(frozen=True, slots=True)
class Launch:
    command: list[str]
    env: dict[str, str]
    folder: Path
    translation: Translation
    policy: Policy | None = None


def launch(spec: Object, program: Program, context: PodContext, termination_log: Path) -> Launch:
    given = container_env(context.pod, spec, context.sources)
    message_path = spec.get("terminationMessagePath") or "/dev/termination-log"
    folders = mounts(spec, context.volumes, given)
    translation = Translation(context.ports, {message_path: str(termination_log), **folders})
    env = inherited_variables(os.environ) | dict(context.node.env) | _conveniences(spec, context, translation)
    if account := folders.get(ACCOUNT_PATH):
        kubeconfig = termination_log.with_name("kubeconfig")
        write_kubeconfig(kubeconfig, Path(account), context.node.env, namespace_of(context.pod))
        env["KUBECONFIG"] = str(kubeconfig)
    own_folders = private_folders(context.folder) if context.node.sandbox else {}
    for variable, path in own_folders.items():
        path.mkdir(mode=0o700, exist_ok=True)
        env[variable] = str(path)
    for values in (program.env, given):
        env |= {name: translation.variable(name, value) for name, value in values.items()}
    env["TERMINATION_MESSAGE_PATH"] = str(termination_log)
    env["PYTHONPATH"] = os.pathsep.join(filter(None, (str(python_path.FOLDER), env.get("PYTHONPATH"))))
    said = {name: env[name] for name in given}
    own = expand_words(spec.get("command") or (), said)
    words = [*in_place_of(program, own), *expand_words(spec.get("args") or (), said)]
    if program.stands_for and own:
        env["PATH"] = f"{put_on_path(program, context.folder)}{os.pathsep}{env.get('PATH', os.defpath)}"
    words = words or list(program.default)
    if not words:
        raise CannotStart(f"image {spec.get('image')} runs the pod's own command here, but the pod gives none")
    command = translation.words(words)
    if command[0] in ("python", "python3"):
        command[0] = program.python or sys.executable
    if program.python:  # a virtual environment, whose other programs come first, too
        scripts = Path(program.python).parent
        env["PATH"] = f"{scripts}{os.pathsep}{env.get('PATH', os.defpath)}"
        env["VIRTUAL_ENV"] = str(scripts.parent)
    working_dir = translation.paths(spec.get("workingDir") or "") or program.working_dir
    folder = Path(working_dir) if working_dir else own_folders.get("HOME", context.folder)
    policy = None
    if context.node.sandbox is not None:
        policy = context.node.sandbox.policy(
            context.pod,
            spec,
            program,
            command,
            folder=context.folder,
            mounts=folders,
            ports=list(context.ports.values()),
            termination_log=termination_log,
        )
    return Launch(command, env, folder, translation, policy)


def _conveniences(spec: Object, context: PodContext, translation: Translation) -> dict[str, str]:
    env = {
        "HOSTNAME": name_of(context.pod),
        "PORT": str(next(iter(translation.ports.values()), "")),
        "PYTHONUNBUFFERED": "1",
        "ISVC_HOST": "127.0.0.1",  # where our model server listens, also in a program of the user's
        "ISVC_MOUNTS": json.dumps(dict(translation.mounts)),
        "ISVC_PORTS": json.dumps({str(port): local for port, local in translation.ports.items()}),
    }
    if spec.get("tty"):
        env["TERM"] = "xterm"
    if PULLER in annotations_of(context.pod):
        env["ISVC_MULTI_MODEL"] = "true"  # the agent brings the models
    if cpus := dig(spec, "resources", "limits", "cpu"):
        limit = -int(-float(Quantity.parse(cpus)) // 1)
        threads = str(max(1, min(limit, os.cpu_count() or 1)))  # a manifest may be for a larger machine
        env |= {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
    return env


def in_place_of(program: Program, command: Sequence[str]) -> list[str]:
    """Returns what to run for a pod's own command, where that starts the program of the image by its name.

    Pods start vLLM as `vllm serve …`, as `python -m vllm.entrypoints.openai.api_server …`, or at the end of a shell
    script that first looks around. A script is left as it is: the name leads to the local program.
    """
    if not program.command or not (program.stands_for and command):
        return list(program.command or command)
    if os.path.basename(command[0]) == program.stands_for:
        return [*program.command, *command[1:]]
    if command[1:2] == ["-m"] and command[2:] and command[2].partition(".")[0] == program.stands_for:
        return [*program.command, *command[3:]]
    return list(command)


def put_on_path(program: Program, folder: Path) -> Path:
    """Returns a folder with a script that has the image's name for the program."""
    path = folder / "bin"
    path.mkdir(exist_ok=True)
    script = path / program.stands_for
    script.write_text(f'#!/bin/sh\nexec {shlex.join(program.command)} "$@"\n')
    script.chmod(0o755)
    return path
