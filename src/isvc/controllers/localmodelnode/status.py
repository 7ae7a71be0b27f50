"""What is said of a node's models: KServe's status, and in annotations what that has no space for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from isvc.api.localmodel import DOWNLOADED, DOWNLOADING, FAILED, PENDING, LocalModelInfo
from isvc.api.model_downloads import DOWNLOADS, STORAGE, ModelDownload, encode
from isvc.controllers.localmodelnode.observe import Observed
from isvc.controllers.localmodelnode.plan import NodePlan, entries
from isvc.controllers.localmodelnode.space import amount, storage_report
from isvc.engine.events import NORMAL, WARNING, Event
from isvc.engine.kind import Folded
from isvc.engine.outcome import Outcome, Rejected, Taken
from isvc.engine.plan import Want
from isvc.serving.storage.uris import storage_key

PROGRESS_SECONDS: Final = 10.0
FOLDER_SECONDS: Final = 60.0
"""How often progress is reported, and how often it is looked whether folders are still there."""


def fold(observed: Observed, planned: NodePlan, outcome: Outcome) -> Folded:
    downloads, events, looks = dict[str, ModelDownload](), list[Event](), list[float]()
    for model, state in entries(observed, planned):
        download = _unless_refused(state.download, storage_key(model.source_model_uri), planned, outcome)
        before = observed.recorded.get(model.status_key)
        downloads[model.status_key] = _stamp(download, before, observed.now)
        events += _events(model, download, before)
        looks += [state.again] if state.again is not None else []
        looks += [PROGRESS_SECONDS] if download.phase in (PENDING, DOWNLOADING) else []
    frequency = observed.config.local_model.reconcilation_frequency_in_secs
    status = {**observed.status, "modelStatus": {key: download.phase for key, download in downloads.items()}}
    if not downloads:
        status.pop("modelStatus")
    said = {DOWNLOADS: encode(downloads), STORAGE: encode(storage_report(observed))}
    again = min(looks, default=float(frequency) if frequency else FOLDER_SECONDS)
    return Folded(status, tuple(events), again, annotations=said)


def _unless_refused(download: ModelDownload, key: str, planned: NodePlan, outcome: Outcome) -> ModelDownload:
    """Returns what is said of a model, which is another thing if the API server refuses its Job."""
    answer = next(part.answer for part in planned.parts if part.name == key)
    for child in answer.children if isinstance(answer, Want) else ():
        result = outcome.results.get(child.key)
        if isinstance(result, Rejected | Taken):
            error = f"Job {child.key.name} cannot be created: {result.message}"
            return msgspec.structs.replace(download, phase=FAILED, error=error)
    return download


def _stamp(download: ModelDownload, before: ModelDownload | None, now: str) -> ModelDownload:
    """Returns what is said with the time since when it is so."""
    if before is not None and msgspec.structs.replace(before, at="") == download:
        return before
    return msgspec.structs.replace(download, at=now)


def _events(model: LocalModelInfo, download: ModelDownload, before: ModelDownload | None) -> Iterator[Event]:
    phase_before = before.phase if before is not None else ""
    if download.phase == FAILED:
        yield Event(WARNING, "DownloadFailed", f"model {model.status_key}: {download.error}")
    elif download.phase == DOWNLOADED and phase_before and phase_before != DOWNLOADED:
        took = f" after {download.seconds:.0f} s" if download.seconds is not None else ""
        yield Event(NORMAL, "Downloaded", f"model {model.status_key}: {amount(download.bytes)}{took}")
