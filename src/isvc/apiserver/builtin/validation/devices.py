"""Validates updates of ResourceClaims."""

from __future__ import annotations

from isvc.apiserver.builtin.validation.checks import Errors, unchanged
from isvc.kube.objects import Object


def claim_update(new: Object, old: Object) -> Errors:
    yield from unchanged("spec", new["spec"], old["spec"])
