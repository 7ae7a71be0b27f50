"""A local program in the place of one of the image, where the pod's own command starts that one by its name.

Pods start vLLM as `vllm serve …`, as `python -m vllm.entrypoints.openai.api_server …`, or at the end of a shell script
that first looks around. A script is left as it is: the name leads to the local program.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from isvc.local.node.programs.images import Program


def in_place_of(program: Program, command: Sequence[str]) -> list[str]:
    """Returns what to run for a pod's own command."""
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
