"""Defaults of ResourceClaims and their templates."""

from __future__ import annotations

from isvc.kube.objects import Object, dig

_EXACT_COUNT = "ExactCount"


def claim(obj: Object) -> None:
    _requests(obj["spec"])


def claim_template(obj: Object) -> None:
    _requests(obj["spec"]["spec"])


def _requests(claim: Object) -> None:
    for request in dig(claim, "devices", "requests") or ():
        for wanted in (request.get("exactly"), *(request.get("firstAvailable") or ())):
            if wanted is not None:
                wanted.setdefault("allocationMode", _EXACT_COUNT)
                if wanted["allocationMode"] == _EXACT_COUNT:
                    wanted.setdefault("count", 1)
