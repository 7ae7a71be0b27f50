"""Differences as text: one unified diff for each child."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from isvc.insight.rendering.differences import Difference, Differences, content
from isvc.insight.simulation.server import Place
from isvc.kube import go_yaml
from isvc.kube.masking import MASK, mask
from isvc.kube.objects import Object


def unified_diff(difference: Difference) -> Iterator[str]:
    """Yields the lines of a unified diff of the child's YAML; secrets are hidden."""
    shown = f"{difference.resource.kind}/{difference.name}"
    before, after = _lines(difference.before), _lines(difference.after)
    if before == after:
        yield "(what differs is hidden)"
    yield from difflib.unified_diff(before, after, f"live/{shown}", f"planned/{shown}", lineterm="")


def summary(differences: Differences) -> str:
    """Returns `2 services would change: children 3 changed, 1 created; 4 pods would restart`."""
    now = [each for each in differences.found if not each.later]
    later = {each.owner for each in differences.found if each.later}
    said = []
    if now:
        verbs = [each.verb for each in now]
        counts = ", ".join(f"{verbs.count(verb)} {verb}" for verb in ("created", "changed", "deleted") if verb in verbs)
        services, pods = len({each.owner for each in now}), differences.restarts
        said.append(f"{count_noun(services, 'service')} would change: children {counts}")
        said.append(f"{count_noun(pods, 'pod')} would restart")
    if later:
        said.append(f"pods of {count_noun(len(later), 'service')} would be made differently when they are replaced")
    return "; ".join(said) or "nothing would change"


def title(owner: Place) -> str:
    resource, namespace, name = owner
    return f"{resource.kind} {namespace}/{name}" if namespace else f"{resource.kind} {name}"


def heading(difference: Difference) -> str:
    if difference.later:
        return f"a pod of {difference.name} would be made differently when it is replaced"
    restart = f"; {count_noun(difference.restarts, 'pod')} would restart" if difference.restarts else ""
    return f"{difference.resource.kind} {difference.name} would be {difference.verb}{restart}"


def count_noun(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _lines(obj: Object | None) -> list[str]:
    shown = content(obj)
    if shown is None:
        return []
    if obj is not None and obj["kind"] == "Secret":
        shown = {**shown, "data": dict.fromkeys(shown.get("data") or {}, MASK)}
    return go_yaml.dump(mask(shown), sort_keys=True).splitlines()
