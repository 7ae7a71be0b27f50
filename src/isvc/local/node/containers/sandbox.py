"""What the manifest of a pod lets one of its containers reach, as a policy of the sandbox."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from isvc.kube.objects import Object, dig
from isvc.local.node.programs.images import STORAGE_INITIALIZER, Program
from isvc.local.node.sandbox.policy import HTTPS, Policy, programs
from isvc.local.node.volumes.tokens import ACCOUNT_PATH

_WRITABLE_VOLUMES: Final = ("emptyDir", "ephemeral", "persistentVolumeClaim", "hostPath")


@dataclass(frozen=True, slots=True)
class Sandbox:
    """That pods are confined, and the ports of this machine besides their own that they need."""

    gateway_ports: tuple[int, ...]
    api_port: int = 0

    def policy(
        self,
        pod: Object,
        spec: Object,
        program: Program,
        command: Sequence[str],
        *,
        folder: Path,
        mounts: Mapping[str, str],
        ports: Sequence[int],
        termination_log: Path,
    ) -> Policy:
        """Returns what a container may do; our storage initializer may connect to wherever models are and read them."""
        fetches = program is STORAGE_INITIALIZER
        writable: list[str | Path] = [
            *private_folders(folder).values(),
            termination_log,
            *_writable_mounts(pod, spec, mounts),
        ]
        readable: list[str | Path] = [
            folder,
            *mounts.values(),
            *_table_paths(program),
            *(_local_sources(command) if fetches else ()),
        ]
        reaches_api = (self.api_port,) if ACCOUNT_PATH in mounts else ()
        return Policy(
            readable=(*programs(command[0]), *_resolve(readable)),
            writable=_resolve(writable),
            listens=tuple(ports),
            connects=None if fetches else (*self.gateway_ports, HTTPS, *reaches_api),
        )


def private_folders(folder: Path) -> dict[str, Path]:
    """Returns folders by the variables that lead there, in place of the user's own."""
    return {"HOME": folder / "home", "TMPDIR": folder / "tmp"}


def _writable_mounts(pod: Object, spec: Object, mounts: Mapping[str, str]) -> list[str]:
    volumes = {volume["name"]: volume for volume in dig(pod, "spec", "volumes") or []}
    found = []
    for mount in spec.get("volumeMounts") or []:
        volume = volumes.get(mount["name"], {})
        read_only = mount.get("readOnly") or dig(volume, "persistentVolumeClaim", "readOnly")
        if mount["mountPath"] in mounts and not read_only and any(kind in volume for kind in _WRITABLE_VOLUMES):
            found.append(mounts[mount["mountPath"]])
    return found


def _table_paths(program: Program) -> list[str]:
    """Returns the paths in the user's own table of programs."""
    environment = str(Path(program.python).parent.parent) if program.python else ""
    return [word for word in (program.working_dir, environment, *program.command) if os.path.isabs(word)]


def _local_sources(command: Sequence[str]) -> list[str]:
    words = (word.removeprefix("file://") for word in command[1:] if word.startswith(("/", "file://")))
    return [path for word in words for path in (word, unquote(word))]


def _resolve(paths: Sequence[str | Path]) -> tuple[Path, ...]:
    return tuple(Path(path).resolve() for path in paths)
