"""How a command ended, as the Status with which `kubectl exec` ends."""

from __future__ import annotations

from typing import Final

from isvc.kube.objects import Object
from isvc.local.node.processes.process import Exit

SUCCESS: Final[Object] = {"metadata": {}, "status": "Success"}


def of(ended: Exit) -> Object:
    if ended.code == 0:
        return SUCCESS
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {ended.code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(ended.code)}]},
    }


def internal_error(message: str) -> Object:
    details = {"causes": [{"message": message}]}
    text = f"Internal error occurred: {message}"
    return {
        "metadata": {},
        "status": "Failure",
        "message": text,
        "reason": "InternalError",
        "details": details,
        "code": 500,
    }
