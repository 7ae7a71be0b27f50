"""Which revision of a component is the newest, which is ready, and which was last rolled out to everybody.

Knative knows revisions and their shares of traffic; a canary needs one thing more: the revision to go back to. That is
remembered in the component's own status, so these functions take the status as it was and give it as it should be.
"""

from __future__ import annotations

from isvc.kube.objects import Object


def component_status(before: Object, knative: Object, *, ready: bool) -> Object:
    """Returns a component's status after its Knative Service reported; addresses change only while it is ready."""
    after = {**before, **_rolled_out(before, knative)}
    after["latestCreatedRevision"] = knative.get("latestCreatedRevisionName", "")
    after["latestReadyRevision"] = knative.get("latestReadyRevisionName", "")
    after["traffic"] = knative.get("traffic") or []
    if ready:
        after |= {field: knative[field] for field in ("address", "url") if knative.get(field)}
    return {field: value for field, value in after.items() if value}


def rolled_out(status: Object) -> dict[str, str]:
    """Returns the revision of each component that was last rolled out to everybody, by the service's status."""
    components: dict[str, Object] = status.get("components") or {}
    revisions = {kind: entry.get("latestRolledoutRevision") for kind, entry in components.items()}
    return {kind: revision for kind, revision in revisions.items() if revision}


def _rolled_out(before: Object, knative: Object) -> Object:
    ready = knative.get("latestReadyRevisionName", "")
    latest = before.get("latestRolledoutRevision", "")
    previous = before.get("previousRolledoutRevision", "")
    shares: dict[str, int] = {}
    for target in knative.get("traffic") or []:
        revision = target.get("revisionName", "")
        shares[revision] = shares.get(revision, 0) + (target.get("percent") or 0)
    for target in knative.get("traffic") or []:
        if target.get("revisionName") != ready or not target.get("latestRevision"):
            continue
        percent = target.get("percent")
        if latest != ready:
            if percent == 100:
                previous, latest = latest, ready
        elif _was_cut_back(target, knative, shares) and previous:
            latest = previous
    return {"latestRolledoutRevision": latest, "previousRolledoutRevision": previous}


def _was_cut_back(target: Object, knative: Object, shares: dict[str, int]) -> bool:
    """Returns whether a fully rolled-out revision gets less than all of the traffic again, split over itself."""
    newest = knative.get("latestReadyRevisionName") == knative.get("latestCreatedRevisionName")
    percent = target.get("percent")
    return newest and percent is not None and percent < 100 and shares.get(target["revisionName"]) == 100
