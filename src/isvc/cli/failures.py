"""What goes wrong outside of this program, in one sentence. Everything else is a bug, and keeps its traceback."""

from __future__ import annotations

import click

from isvc.insight.operations import NotPossible
from isvc.kube.errors import ApiError, Forbidden, Unauthorized
from isvc.kube.masking import plain_text
from isvc.toolkit.failure import ClusterError


def describe_error(error: Exception) -> str:
    """Returns what the user reads, or nothing for an error that nobody expects."""
    return plain_text(_describe(error))  # it may quote what others wrote


def _describe(error: Exception) -> str:
    match error:
        case Unauthorized():
            return "the cluster does not accept these credentials; log in again, or choose another --context"
        case Forbidden() | ClusterError() | NotPossible():
            return str(error)
        case ApiError() | click.ClickException():
            return error.message
        case ExceptionGroup():  # of tasks that ran side by side: what ended them
            said = [_describe(each) for each in error.exceptions]
            return said[0] if all(said) else ""
        case OSError() if error.strerror:
            return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return ""
