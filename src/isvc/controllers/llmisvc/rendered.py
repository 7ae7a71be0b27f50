"""Whether a merged spec is one that a service may have, which the API server has to say.

Configurations are templates, so their schema is loose: only what comes out can be checked. A dry run puts it through
the schema, its rules and our own webhook. One answer serves all services that differ in nothing but names: those were
checked when the service was admitted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import orjson

from isvc.api.resources import LLM_INFERENCE_SERVICES
from isvc.controllers.llmisvc.observed import Merged
from isvc.controllers.llmisvc.presets import storable
from isvc.controllers.llmisvc.status.conditions import PRESETS_COMBINED
from isvc.engine.needs import DryRun
from isvc.kube.conditions import is_true
from isvc.kube.equality import equivalent
from isvc.kube.errors import ApiError
from isvc.kube.objects import Object, dig, name_of, namespace_of
from isvc.serving import names

_HARMLESS: Final = re.compile(r"(?:\w+://)?[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*)*")
_LONGEST: Final = 200


def ask_about(raw: Object, merged: Merged) -> DryRun:
    """Returns the question whether a service may have what was merged for it."""
    spec = storable(merged.raw)
    body = LLM_INFERENCE_SERVICES.manifest(
        {"generateName": names.child(name_of(raw), "-validation-"), "namespace": namespace_of(raw)}, spec=spec
    )
    return DryRun(LLM_INFERENCE_SERVICES, hash(_anonymous(spec, raw)), body)


def refusal(error: ApiError, merged: Merged) -> str:
    configs = ", ".join(f"{each.source}:{each.namespace}/{each.name}" for each in merged.applied)
    return f"dry-run validation failed after merging configs [{configs}]: {_details(error)}"


def _details(error: ApiError) -> str:
    """Returns what is wrong field by field; the message itself begins with the name of an object that nobody knows."""
    causes = error.details.get("causes") or ()
    return "; ".join(_cause(cause) for cause in causes) or error.message


def _cause(cause: Object) -> str:
    field, message = cause.get("field", ""), cause.get("message", "")
    return f"{field}: {message}" if field else message


def was_good(raw: Object, merged: Merged) -> bool:
    """Returns whether an earlier run of this program found the same configurations good for this very service."""
    status = raw.get("status") or {}
    return (
        is_true(status.get("conditions") or (), PRESETS_COMBINED)
        and status.get("observedGeneration") == dig(raw, "metadata", "generation")
        and equivalent(status.get("appliedConfigs") or [], [each.report() for each in merged.applied])
    )


def _anonymous(spec: Object, raw: Object) -> bytes:
    """Returns the spec's text without the names in it."""
    text = orjson.dumps(spec)
    for number, name in enumerate(_names(spec, raw)):
        if len(name) < _LONGEST and _HARMLESS.fullmatch(name):
            text = text.replace(name.encode(), b"\x00%d" % number)
    return text


def _names(spec: Object, raw: Object) -> Iterable[str]:
    model = spec.get("model") or {}
    found = (model.get("uri"), model.get("name"), name_of(raw), namespace_of(raw))
    return dict.fromkeys(name for name in found if name)
