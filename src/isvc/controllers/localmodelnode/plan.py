"""Which models are there, which are on their way, and which Jobs should exist."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from isvc.api.localmodel import DOWNLOADED, DOWNLOADING, FAILED, PENDING, LocalModelInfo
from isvc.api.model_downloads import ModelDownload
from isvc.controllers.localmodelnode.disk import final_path
from isvc.controllers.localmodelnode.downloads import Download
from isvc.controllers.localmodelnode.job import download_job
from isvc.controllers.localmodelnode.observe import Observed
from isvc.controllers.localmodelnode.space import Allocation, Space, misplacement, why_not
from isvc.engine.plan import Answer, Child, Hold, Part, Plan, Retire, Want
from isvc.engine.policies import CREATE_ONLY
from isvc.kube.resource import JOBS
from isvc.serving.refused import Refused
from isvc.serving.storage.uris import storage_key

CHILDREN: Final = frozenset({JOBS})
ARCHIVES: Final = (".tar", ".tar.gz", ".tgz", ".zip")
FIRST_PAUSE: Final = 10.0
LONGEST_PAUSE: Final = 600.0


@dataclass(frozen=True, slots=True)
class ModelState:
    """How far a model is, and in how many seconds that may be different without a watch that reports it."""

    download: ModelDownload
    again: float | None = None


@dataclass(frozen=True, slots=True)
class NodePlan(Plan):
    models: Mapping[str, ModelState] = field(default_factory=dict)


def plan(observed: Observed) -> NodePlan:
    """Returns a Job for each model that is lacking and has space, and the state of every model, by its folder."""
    allocation, states, parts = Allocation(observed), dict[str, ModelState](), list[Part]()
    for key, model in observed.by_key.items():
        own = tuple(each for each in observed.downloads if each.key == key)
        states[key], answer = _Model(observed, allocation, key, model, own).decide()
        made = {child.key.name for child in answer.children} if isinstance(answer, Want) else set()
        parts.append(Part(key, answer, CHILDREN, frozenset({each.name for each in own} | made), independent=True))
    unasked = frozenset(each.name for each in observed.downloads if each.key not in observed.by_key)
    parts.append(Part("unasked", Retire("no cache asks for it"), CHILDREN, unasked))
    return NodePlan(tuple(parts), references=frozenset(), models=states)


def pause_after(attempt: int) -> float:
    """Returns the seconds to wait before another attempt."""
    return float(min(FIRST_PAUSE * 2 ** min(attempt - 1, 10), LONGEST_PAUSE))


@dataclass(frozen=True, slots=True)
class _Model:
    """A model of the node, and the Jobs that there are for it, the oldest first."""

    observed: Observed
    allocation: Allocation
    key: str
    model: LocalModelInfo
    own: tuple[Download, ...]

    def decide(self) -> tuple[ModelState, Answer]:
        observed, key = self.observed, self.key
        if (receipt := observed.stock.complete.get(key)) is not None:
            attempts = receipt.attempts or self._attempts
            done = ModelDownload(
                phase=DOWNLOADED,
                bytes=receipt.bytes,
                total_bytes=receipt.bytes,
                seconds=receipt.seconds,
                attempts=attempts,
            )
            return ModelState(done), Hold("Downloaded", "its Job ends by itself")
        space = self.allocation.find(key, self.model)
        live = next((each for each in self.own if each.is_under_way), None)
        if live is not None:
            return self._follow(live, space)
        if problem := self._problem(space):
            return self._fail(problem), Hold("Refused", problem)
        last = self.own[-1] if self.own else None
        if last is not None and (state := self._state_after(last, space)) is not None:
            return state, Hold("Waiting", "the next attempt comes later")
        if key in observed.in_use:
            problem = "a pod of an earlier attempt has not ended yet"
            waiting = ModelDownload(phase=PENDING, error=problem, attempts=self._attempts)
            return ModelState(waiting), Hold("Ending", problem)
        return self._start(space)

    def _follow(self, live: Download, space: Space) -> tuple[ModelState, Answer]:
        come = self.observed.stock.incoming.get(self.key, 0)
        if space.left is not None and come > space.left * (2 if self._is_archive else 1):
            problem = why_not(self.key, space, self.observed)
            return self._fail(problem, seen=come), Retire(problem)
        download = ModelDownload(
            phase=DOWNLOADING if live.is_running else PENDING,
            bytes=come,
            total_bytes=space.needed or None,
            seconds=live.seconds(self.observed.now),
            error=live.error,
            attempts=live.attempt,
        )
        return ModelState(download), Hold("UnderWay", live.name)

    def _state_after(self, last: Download, space: Space) -> ModelState | None:
        """Returns the state of a model whose last attempt came to nothing, until it is time for the next."""
        observed = self.observed
        if last.failed:
            remedy = ": delete a cache of this node, or give its models more space" if last.ran_out_of_space else ""
            error = f"{last.error or 'the download failed'}{remedy}"
        elif last.succeeded and (last.name not in observed.stock.ended or self.key in observed.stock.arrived):
            # It ended after the disk was looked at, or its pod has not: the watch that says so leads to another look.
            return ModelState(ModelDownload(phase=DOWNLOADING, attempts=last.attempt))
        elif last.succeeded and observed.phase_before(self.model) != DOWNLOADED:
            folder = f"{observed.place.folder}/{final_path(self.key)}"
            error = (
                f"Job {last.name} succeeded, but nothing is in {folder}: the volume of LocalModelNodeGroup "
                f"{space.group} has to be the folder that the program on node {observed.name} looks after"
            )
        else:
            return None
        left = pause_after(last.attempt) - last.seconds_since_end(observed.now)
        seconds = last.seconds(observed.now)
        failed = ModelDownload(phase=FAILED, seconds=seconds, error=error, attempts=last.attempt)
        return ModelState(failed, left) if left > 0 else None

    def _problem(self, space: Space) -> str:
        observed = self.observed
        if observed.stock.problem:
            return observed.stock.problem
        if space.group not in observed.groups:
            missing = f"LocalModelNodeGroup {space.group} does not exist" if space.group else "no LocalModelNodeGroup"
            return f"{missing}: create it, or name another in the cache"
        return misplacement(observed.groups[space.group], observed) or why_not(self.key, space, observed)

    def _start(self, space: Space) -> tuple[ModelState, Answer]:
        attempt = self._attempts + 1
        self.allocation.take(space)
        try:
            job = download_job(self.observed, self.model, space, attempt)
        except Refused as refused:
            return self._fail(str(refused)), Hold("Refused", str(refused))
        error = self._recorded.error
        state = ModelDownload(phase=PENDING, total_bytes=space.needed or None, error=error, attempts=attempt)
        return ModelState(state), Want((Child(JOBS, job, CREATE_ONLY),))

    def _fail(self, error: str, seen: int = 0) -> ModelState:
        """Says that a model cannot be downloaded now. How large it was seen to be is remembered."""
        before = self._recorded.bytes if self._recorded.phase == FAILED else 0
        failed = ModelDownload(phase=FAILED, bytes=seen or before, error=error, attempts=self._attempts)
        return ModelState(failed)

    @property
    def _is_archive(self) -> bool:
        """Returns whether there are two of it for a while: what came, and what is being unpacked."""
        return self.model.source_model_uri.partition("?")[0].endswith(ARCHIVES)

    @property
    def _attempts(self) -> int:
        return max((self._recorded.attempts, *(each.attempt for each in self.own)))

    @property
    def _recorded(self) -> ModelDownload:
        return self.observed.recorded.get(self.model.status_key) or ModelDownload()


def entries(observed: Observed, planned: NodePlan) -> Iterator[tuple[LocalModelInfo, ModelState]]:
    """Yields every model of the list with its state; several may have the same folder, if they have one source."""
    for model in observed.models:
        key = storage_key(model.source_model_uri)
        first = observed.by_key[key]
        if first.source_model_uri == model.source_model_uri:
            yield model, planned.models[key]
        else:
            error = (
                f"its folder {final_path(key)} is that of {first.status_key}, whose sourceModelUri is another that has"
                " the same hash: write one of the two in another way"
            )
            yield model, ModelState(ModelDownload(phase=FAILED, error=error))
