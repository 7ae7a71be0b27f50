"""Whether gateways have accepted a service's inference pool.

Only the gateways that the service's routes use count: a pool's status may still name others of before. Both API
groups say who accepted a pool, in fields of different names.
"""

from __future__ import annotations

from collections.abc import Sequence

from isvc.controllers.llmisvc.router.readiness import is_current
from isvc.kube.conditions import find
from isvc.kube.objects import Key, Object, dig, name_of, namespace_of
from isvc.serving.thirdparty import INFERENCE_POOLS_V1ALPHA2

WAITING, NOT_READY, ABSENT = "WaitingForGateway", "InferencePoolNotReady", "InferencePoolFetchError"


def pool_problem(pool: Object, gateways: Sequence[Key]) -> tuple[str, str] | None:
    """Returns the reason and message of what keeps a pool from being ready; None when nothing does."""
    title = f"{namespace_of(pool)}/{name_of(pool)}"
    answers = [(key, parent) for key, parent in _answers(pool) if key in gateways]
    if not answers:
        return WAITING, f"Inference Pool {title} exists but no Gateway controller has accepted it yet"
    for gateway in gateways:
        if gateway not in {key for key, _ in answers}:
            return WAITING, f"Inference Pool {title} is not yet accepted by gateway {gateway}"
    accepted = [find(parent.get("conditions") or (), "Accepted") for _, parent in answers]
    if all(condition is not None and is_current(condition, pool) for condition in accepted):
        return None
    refused = next((each for each in accepted if each is not None and not is_current(each, pool)), None)
    if refused is None:
        return NOT_READY, f"The inference pool {title} is not ready"
    status, reason, message = (refused.get(key, "") for key in ("status", "reason", "message"))
    return NOT_READY, f'{title}: Accepted="{status}" (reason "{reason}", message "{message}")'


def _answers(pool: Object) -> list[tuple[Key, Object]]:
    """Returns who said something about the pool, by gateway."""
    older = pool.get("apiVersion") == INFERENCE_POOLS_V1ALPHA2.api_version
    parents, reference = ("parent", "parentRef") if older else ("parents", "parentRef")
    return [
        (Key(dig(each, reference, "namespace") or namespace_of(pool), dig(each, reference, "name") or ""), each)
        for each in dig(pool, "status", parents) or ()
    ]
