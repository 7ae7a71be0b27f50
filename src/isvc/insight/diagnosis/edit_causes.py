"""Children and pods that are older than what they were made from: the configuration, a runtime, a preset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from isvc.api.annotations import DISABLE_AUTO_UPDATE
from isvc.insight.diagnosis.evidence import Evidence, Outdated, last_written
from isvc.insight.diagnosis.finding import Finding, Level
from isvc.kube.objects import Key, annotations_of, name_of, namespace_of
from isvc.kube.resource import PODS

_SHOWN = 3


def children_outdated(evidence: Evidence) -> Iterator[Finding]:
    """Finds children that their controller would change, but has not."""
    children = [each for each in evidence.outdated if each.live["kind"] != PODS.kind]
    if not children:
        return
    subject, newer = _join_some([*map(_change_text, children)]), _edits(evidence, children)
    chain = evidence.chain_to(children[0].live)
    if annotations_of(evidence.service).get(DISABLE_AUTO_UPDATE) == "true":
        message = f"it does not follow {newer or 'its runtime'}, as {DISABLE_AUTO_UPDATE} asks: {subject} would change"
        remedy = "take that annotation off the service when it is to follow"
    else:
        since = f"since {newer}" if newer else "to what its controller would write"
        message = f"{subject} would change {since}, and has not been written"
        remedy = "see whether its controller manager runs, and what it logs"
    yield Finding("EditedSince", message, remedy, Level.WARNS, chain)


def pods_outdated(evidence: Evidence) -> Iterator[Finding]:
    """Pods run with what was put into them when they were made, whatever the configuration says now."""
    pods = [each for each in evidence.outdated if each.live["kind"] == PODS.kind]
    if not pods:
        return
    first = pods[0].live
    message = f"{_join_some([*map(_change_text, pods)])} would be made differently since {_edits(evidence, pods)}"
    remedy = f"when it suits, kubectl delete pod -n {namespace_of(first)} {name_of(first)}: its successor is made anew"
    yield Finding("PodOutdated", message, remedy, Level.WARNS, evidence.chain_to(first))


def _change_text(outdated: Outdated) -> str:
    return f"{outdated.live['kind']} {name_of(outdated.live)} ({_join_some(outdated.fields)})"


def _edits(evidence: Evidence, outdated: Sequence[Outdated]) -> str:
    """Returns the sources that were edited after one of the objects was written."""
    oldest = min(last_written(each.live) for each in outdated)
    newer = [f"{source['kind']} {Key.of(source)}" for source in evidence.sources if last_written(source) >= oldest]
    return f"the last change of {_join_some(newer)}" if newer else ""


def _join_some(words: Sequence[str]) -> str:
    more = len(words) - _SHOWN
    return ", ".join(words[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
