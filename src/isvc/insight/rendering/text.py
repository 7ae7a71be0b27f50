"""Differences as text: one unified diff for each child."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Final

from isvc.insight.rendering.differences import Difference, Differences, content
from isvc.insight.simulation.server import Place
from isvc.kube import go_yaml
from isvc.kube.masking import MASK, drop_controls, mask
from isvc.kube.objects import LAST_APPLIED, Object

_BOOKKEEPING: Final = (LAST_APPLIED, "deployment.kubernetes.io/", "autoscaling.alpha.kubernetes.io/")


def unified_diff(difference: Difference) -> Iterator[str]:
    """Yields the lines of a unified diff of the child's YAML; secrets are hidden."""
    shown = f"{difference.resource.kind}/{difference.name}"
    before, after = _lines(difference.before), _lines(difference.after)
    if before == after:
        yield "(what differs is hidden: a secret, or what controllers keep for themselves)"
    yield from difflib.unified_diff(before, after, f"live/{shown}", f"planned/{shown}", lineterm="")


def summary(differences: Differences) -> str:
    """Returns `2 services would change: children 3 changed, 1 created; 4 pods would restart`."""
    now = [each for each in differences.found if not each.later]
    later = {each.owner for each in differences.found if each.later}
    said = []
    if now:
        verbs = [each.verb for each in now]
        counts = ", ".join(f"{verbs.count(verb)} {verb}" for verb in ("created", "changed", "deleted") if verb in verbs)
        services, ends = len({each.owner for each in now}), sum(each.restarts for each in now if each.after is None)
        said.append(f"{count_noun(services, 'service')} would change: children {counts}")
        said.append(f"{count_noun(differences.restarts - ends, 'pod')} would restart")
        said += [f"{count_noun(ends, 'pod')} would end"] if ends else []
    if later:
        said.append(f"pods of {count_noun(len(later), 'service')} would be made differently when they are replaced")
    return "; ".join(said) or "nothing would change"


def title(owner: Place) -> str:
    resource, namespace, name = owner
    return f"{resource.kind} {namespace}/{name}" if namespace else f"{resource.kind} {name}"


def heading(difference: Difference) -> str:
    if difference.later:
        return f"a pod of {difference.name} would be made differently when it is replaced"
    pods = f"; {_fate(difference)}" if difference.restarts else ""
    return f"{difference.resource.kind} {difference.name} would be {difference.verb}{pods}"


def _fate(difference: Difference) -> str:
    return f"{count_noun(difference.restarts, 'pod')} would {'end' if difference.after is None else 'restart'}"


def count_noun(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _lines(obj: Object | None) -> list[str]:
    shown = content(obj)
    if shown is None:
        return []
    shown = {**shown, "metadata": _written_by_people(shown["metadata"])}
    if obj is not None and obj["kind"] == "Secret":
        shown = {**shown, "data": dict.fromkeys(shown.get("data") or {}, MASK)}
    return drop_controls(go_yaml.dump(mask(shown), sort_keys=True)).splitlines()


def _written_by_people(metadata: Object) -> Object:
    """Returns metadata without what controllers and kubectl keep there for themselves."""
    annotations = metadata.get("annotations") or {}
    kept = {name: text for name, text in annotations.items() if not name.startswith(_BOOKKEEPING)}
    rest = {name: value for name, value in metadata.items() if name not in ("annotations", "ownerReferences")}
    return {**rest, "annotations": kept} if kept else rest
