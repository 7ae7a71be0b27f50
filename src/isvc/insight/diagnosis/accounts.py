"""A ServiceAccount that pods are to run as, and that does not exist."""

from __future__ import annotations

import re

from isvc.insight.diagnosis.finding import Finding

#: As API servers say it of pods, and the controller of LLMInferenceServices of a template.
_NOT_FOUND = re.compile(r'service account ([^/\s]+)/(\S+): serviceaccount "[^"]+" not found', re.IGNORECASE)


def missing_account(what: str, message: str) -> Finding | None:
    """Returns the cause of `what`, if the message says that an account is missing."""
    if (found := _NOT_FOUND.search(message)) is None:
        return None
    namespace, name = found.groups()
    return Finding(
        "ServiceAccountMissing",
        f"{what}, because there is no ServiceAccount {namespace}/{name}, which they run as and take credentials from",
        f"kubectl create serviceaccount {name} -n {namespace}, or correct serviceAccountName in the service",
    )
