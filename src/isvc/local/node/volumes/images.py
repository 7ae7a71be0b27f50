"""Volumes that are images: what an image holds under /models is fetched from its registry into the volume's folder.

There is no container engine to mount the rest of it. The registry knows us by the login that docker has.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from isvc.kube.objects import Object, dig
from isvc.local.node.environment import Missing, inherited_variables
from isvc.local.node.processes.process import Reaper, run_beside
from isvc.local.node.programs.images import STORAGE_INITIALIZER

_MODELS: Final = "models"
_THIS_MACHINE: Final = ("localhost", "127.0.0.1", "[::1]")


async def fetch_images(pod: Object, volumes: Path, reaper: Reaper) -> None:
    """Fills the folders of a pod's image volumes, where they are not yet. Raises `Missing` with the reason."""
    for volume in dig(pod, "spec", "volumes") or ():
        reference = dig(volume, "image", "reference")
        target = volumes / volume["name"] / _MODELS
        if not reference or target.exists():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        message = target.parent / "message"
        command = [*STORAGE_INITIALIZER.command, f"oci://{reference}", str(target)]
        status, output = await run_beside(command, _environment(reference, message), volumes, reaper)
        if status:
            said = message.read_text() if message.exists() else output.strip().rpartition("\n")[2]
            raise Missing(f"volume {volume['name']}: image {reference} cannot be fetched: {said}")


def _environment(reference: str, message: Path) -> dict[str, str]:
    env = {**inherited_variables(os.environ), "TERMINATION_MESSAGE_PATH": str(message)}
    login = Path.home() / ".docker" / "config.json"
    if login.exists():
        env["KSERVE_OCI_DOCKER_CONFIG"] = str(login)
    if reference.partition("/")[0].rpartition(":")[0] in _THIS_MACHINE:
        env["KSERVE_OCI_INSECURE_REGISTRY"] = "true"  # as container engines do: nobody listens in between
    return env
