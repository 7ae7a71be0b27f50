"""Write policies: which differences between a live child and its manifest make an update due, and what it replaces.

A policy is a property of the kind of child and of who else writes to it. Use a named one; define a new one here, with
the reason for it, when none fits.

| policy                   | update when                                       | left to others                       |
|--------------------------|---------------------------------------------------|--------------------------------------|
| `WHOLE`                  | any content differs, or our labels, annotations   | their labels and annotations         |
| `WHOLE_BUT_REPLICAS`     | the same, except `spec.replicas`                  | the same, and `spec.replicas`        |
| `CREATE_ONLY`            | never                                             | everything, once it exists           |
| `SPEC`                   | `spec` differs                                    | nothing: metadata is replaced as well|
| `SPEC_AND_METADATA`      | `spec`, labels or annotations differ, theirs too  | nothing                              |
| `SPEC_AND_OUR_METADATA`  | `spec` differs, or a label, annotation of ours    | theirs, until an update is due       |
| `SPEC_KEEPING_METADATA`  | `spec` differs                                    | their labels and annotations         |
| `DATA`                   | `data` differs                                    | nothing                              |
| `SERVICE_PORTS`          | ports or selector differ                          | the rest of `spec`, until then       |
| `WORKLOAD`               | `spec` differs                                    | `kubectl rollout restart`            |
| `SHARED_WITH_AUTOSCALER` | `spec` differs                                    | the same, and `spec.replicas`        |
| `MARKED_WORKLOAD`        | as `SPEC_AND_OUR_METADATA`                        | theirs, and `rollout restart`        |
| `MARKED_SHARED`          | the same                                          | the same, and `spec.replicas`        |
| `VOLUME`                 | `spec` differs                                    | theirs, and to what it is bound      |
| `KNATIVE_SERVICE`        | labels, template or traffic differ                | their annotations, the rest of `spec`|
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from isvc.kube.objects import LAST_APPLIED

LABELS: Final = "metadata.labels"
ANNOTATIONS: Final = "metadata.annotations"
RESTARTED: Final = "spec.template.metadata.annotations[kubectl.kubernetes.io/restartedAt]"  # kubectl rollout restart
COPIED: Final = f"spec.template.metadata.annotations[{LAST_APPLIED}]"  # by KServe, from a graph: no reason to restart


@dataclass(frozen=True, slots=True)
class WritePolicy:
    """When a child is updated. Paths are dotted; a last key that has dots itself stands in brackets.

    `compare`  fields whose difference makes an update due; None stands for all content and our labels and annotations.
               An update replaces the whole child.
    `ignore`   fields that another controller owns: written when the child is created, and left as they are then
    `require`  maps that others may add to: an update is due when an entry of ours is missing or differs
    `retain`   maps whose entries of others survive an update. Where a map is required and retained, an entry that we
               set and no longer want makes an update due as well.
    """

    compare: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    require: tuple[str, ...] = ()
    retain: tuple[str, ...] = ()

    @property
    def required(self) -> tuple[str, ...]:
        return self.require if self.compare is not None else (*self.require, LABELS, ANNOTATIONS)

    def retains(self, path: str) -> bool:
        return self.compare is None or path in self.retain

    def withdraws(self, path: str) -> bool:
        """Returns whether an entry of this map that we set once and no longer want makes an update due."""
        return self.compare is None or (path in self.require and path in self.retain)


WHOLE: Final = WritePolicy()
WHOLE_BUT_REPLICAS: Final = WritePolicy(ignore=("spec.replicas",))
CREATE_ONLY: Final = WritePolicy(compare=())
SPEC: Final = WritePolicy(compare=("spec",))
SPEC_AND_METADATA: Final = WritePolicy(compare=("spec", LABELS, ANNOTATIONS))
SPEC_AND_OUR_METADATA: Final = WritePolicy(compare=("spec",), require=(LABELS, ANNOTATIONS))
SPEC_KEEPING_METADATA: Final = WritePolicy(compare=("spec",), retain=(LABELS, ANNOTATIONS))
DATA: Final = WritePolicy(compare=("data",))
#: A Service's addresses, node ports and families belong to the cluster.
SERVICE_PORTS: Final = WritePolicy(compare=("spec.ports", "spec.selector"))
WORKLOAD: Final = WritePolicy(compare=("spec",), ignore=(RESTARTED, COPIED))
SHARED_WITH_AUTOSCALER: Final = WritePolicy(compare=("spec",), ignore=(RESTARTED, COPIED, "spec.replicas"))
MARKED_WORKLOAD: Final = WritePolicy(compare=("spec",), ignore=(RESTARTED,), require=(LABELS, ANNOTATIONS))
MARKED_SHARED: Final = WritePolicy(
    compare=("spec",), ignore=(RESTARTED, "spec.replicas"), require=(LABELS, ANNOTATIONS)
)
VOLUME: Final = WritePolicy(compare=("spec",), ignore=("spec.claimRef",), retain=(LABELS, ANNOTATIONS))
#: Knative notes on a Service who created it, and refuses an update that takes the note away.
KNATIVE_SERVICE: Final = WritePolicy(
    compare=(LABELS, "spec.template", "spec.traffic"), ignore=(COPIED,), require=(ANNOTATIONS,), retain=(ANNOTATIONS,)
)
