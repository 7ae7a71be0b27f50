"""One pod's life on this node: init containers, containers, status, and the end.

The worker owns the pod's processes. It reports to the API server and never asks it: whenever something changes, it
computes the whole status and writes it if it differs from the last.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
from collections.abc import Awaitable, Callable
from typing import Any

from isvc.kube.errors import ApiError, NotFound
from isvc.kube.objects import Object, dig, finalizers_of, is_being_deleted, name_of, namespace_of, uid_of
from isvc.kube.resource import PERSISTENT_VOLUME_CLAIMS, PODS
from isvc.kube.timestamps import timestamp
from isvc.local.node.capacity import capacity, node_labels
from isvc.local.node.containers.container import Container, describe_os_error
from isvc.local.node.containers.launch import PodContext
from isvc.local.node.containers.translate import container_ports
from isvc.local.node.environment import Missing
from isvc.local.node.pods.ephemeral import NONE_RUNS, EphemeralContainers
from isvc.local.node.pods.events import LACKING, PodEvents
from isvc.local.node.pods.first_states import first_states, is_lost, lose, pretend
from isvc.local.node.pods.lacking import missing_here
from isvc.local.node.pods.node_services import NodeServices
from isvc.local.node.pods.ports import bind
from isvc.local.node.pods.status import after_write, patch_of, pod_status
from isvc.local.node.volumes import folders
from isvc.local.node.volumes.files import files_of, require_claims
from isvc.local.node.volumes.images import fetch_images
from isvc.toolkit.client import PatchKind
from isvc.toolkit.clock import until
from isvc.toolkit.failure import ClusterError
from isvc.toolkit.tasks import cancel, run_together

log = logging.getLogger("isvc.node")

_GRACE = 30.0
_SHORTEST_RETRY, _RETRY, _LONGEST_RETRY = 0.1, 2.0, 60.0
_END = 2.0  # of the grace period, what is kept for the processes to end in
# How long a pod whose name comes again stays: `kubectl delete` reads it and then begins to watch, and would wait for
# ever for another one that has the name by then.
_STAYS_IN_SIGHT = 0.3


class PodWorker:
    def __init__(self, pod: Object, node: NodeServices) -> None:
        self.pod = pod
        self.folder = node.pods / uid_of(pod)
        self.containers: list[Container] = []
        self._node = node
        self._started = dig(pod, "status", "startTime") or timestamp(node.clock.now())
        self._init_states = first_states(pod, "initContainers", "initContainerStatuses")
        self._main_states = first_states(pod, "containers", "containerStatuses")
        self._ephemeral = EphemeralContainers(self.folder, node.clock)
        self._context: PodContext | None = None  # once the containers can be started
        self._written: Object | None = None
        self._dirty = asyncio.Event()
        self._life: asyncio.Task[None] | None = None
        self._writer: asyncio.Task[None] | None = None
        self._end: asyncio.Task[None] | None = None
        self._sidecars: list[asyncio.Task[None]] = []
        self._events = PodEvents(node.client, node.recorder)
        self._renewal: asyncio.Task[None] | None = None
        self.is_pretended = False  # by --simulate, as a whole, because a container of it cannot run here
        self.local_ports: dict[int, int] = {}  # by the container's port

    # -- what the node calls ------------------------------------------------------------------------------------------

    def start(self) -> None:
        self._writer = self._begin("status of pod", self._write_status())
        if is_lost(self.pod):
            lose(self.pod, self._init_states, self._main_states, self._now())
            self._touch()
            return
        if dig(self.pod, "status", "containerStatuses"):
            self._touch()  # it ran before this node was started: what was ready then is not now
        self._life = self._begin("pod", self._keep_alive())

    def update(self, pod: Object) -> None:
        self.pod = pod
        if is_being_deleted(pod):
            self.terminate()
            return
        if dig(pod, "spec", "readinessGates"):
            self._touch()  # one may have opened
        if self._ephemeral.add(pod):
            self._run_ephemeral()

    def _run_ephemeral(self) -> None:
        if self._life is None or self._life.done():
            self._ephemeral.refuse(NONE_RUNS)
        elif self._context is not None:
            self.containers += self._ephemeral.start(self._context)
        self._touch()

    def terminate(self) -> asyncio.Task[None]:
        """Ends a pod that is being deleted: drains, stops, then reports to the API server that it is gone."""
        if self._end is None:
            self._end = self._begin("end of pod", self._until_possible(self._terminate))
        return self._end

    async def abandon(self, grace: float) -> None:
        """Ends the processes because the node stops; the pod stays as it is for the next start."""
        await self._stop_containers(grace)
        await self._cancel()

    async def vanish(self) -> None:
        """Ends the pod's processes: it is no longer there at all."""
        await self.abandon(1)
        await self._clean_up()
        self._end = self._context = None  # as above: in a cycle it would wait for the collector
        self.containers = []

    async def renew_volumes(self) -> None:
        """Renews what is mounted and has changed; a pod that has not started reads it when it does."""
        if not self.containers:
            return
        try:
            files = await self._read_files()
            folders.prepare(self.pod, files, self.folder, self._node.claims)
            self._renew_tokens(files)
        except (Missing, OSError, ApiError, ClusterError) as error:
            self._event("Warning", "FailedMount", str(error))

    async def _read_files(self) -> folders.Files:
        return await files_of(self.pod, self._node.client, self._node.disk, self._node.name)

    def _renew_tokens(self, files: folders.Files) -> None:
        """Has the volumes filled anew before the first of the pod's tokens ends."""
        if self._renewal is not None:
            self._renewal.cancel()
            self._renewal = None
        now = self._node.clock.now()
        if waits := [token.renewal_in(now) for token in files.tokens.values()]:
            self._renewal = asyncio.create_task(self._renew_after(max(min(waits), _RETRY)))

    async def _renew_after(self, seconds: float) -> None:
        await until(self._node.clock, seconds)
        self._renewal = None  # this task, which must not cancel itself
        await self.renew_volumes()

    def container(self, name: str) -> Container | None:
        return next((container for container in self.containers if container.name == name), None)

    # -- from start to end --------------------------------------------------------------------------------------------

    async def _keep_alive(self) -> None:
        """Runs the pod, again where the node failed at it: nothing else would ever start it again."""
        pause = _RETRY
        while True:
            try:
                return await self._live()
            except NotFound:
                raise
            except Exception as error:
                log.exception("pod %s", self._title)
                self._all_wait("RunContainerError", f"the node failed: {error}")
            await self._stop_containers(1)
            self._node.ports.release(self.local_ports.values())
            self.containers, self._context = [], None
            await self._node.clock.sleep(pause)
            pause = min(pause * 2, _LONGEST_RETRY)

    async def _live(self) -> None:
        await self._node.opened.wait()
        await self._claim()
        await self._warn()
        states = (*self._init_states, *self._main_states)
        self.is_pretended = self._node.simulate and any(self._node.images.find(each.image) is None for each in states)
        if self.is_pretended:
            pretend(self._init_states, self._main_states, self._now())
            self._touch()
            return
        context = self._context = await self._prepare()
        self._ephemeral.add(self.pod)
        self._run_ephemeral()
        policy = dig(self.pod, "spec", "restartPolicy") or "Always"
        if not await self._run_init(context, policy):
            return
        for state in self._main_states:
            state.wait("ContainerCreating")
        specs = dig(self.pod, "spec", "containers") or []
        main = [Container(spec, state, context) for spec, state in zip(specs, self._main_states, strict=True)]
        self.containers += main
        await run_together(*(container.run(policy) for container in main))
        await self._stop_containers(self._grace())  # the sidecars, which have nobody left to serve
        self._touch()

    async def _warn(self) -> None:
        """Says what the pod asks for that is not there; it runs without it."""
        missing = [*missing_here(self.pod, node_labels(self._node.name), capacity())]
        place = self._node.claims / namespace_of(self.pod)
        for name in (claim for claim in folders.claims(self.pod) if (place / claim).exists()):
            with contextlib.suppress(ApiError, ClusterError):
                if not await self._node.client.find(PERSISTENT_VOLUME_CLAIMS, name, namespace_of(self.pod)):
                    missing.append(f"the claim {name} does not exist, and a folder of that name takes its place")
        if missing:
            self._event("Warning", LACKING, f"{'; '.join(missing)}; the pod runs without")

    async def _claim(self) -> None:
        self.local_ports = self._node.ports.allocate(container_ports(self.pod))
        await self._until_possible(lambda: bind(self.pod, self._node.name, self.local_ports, self._node.client))

    async def _prepare(self) -> PodContext:
        """Fills volumes and looks everything up, again until what is missing is there."""
        pause = _SHORTEST_RETRY
        place = self._node.claims / namespace_of(self.pod)
        if under_way := [task for name in folders.claims(self.pod) if (task := self._node.filling.get(place / name))]:
            await asyncio.wait(under_way)
        while True:
            try:
                files = await self._read_files()
                await require_claims(self.pod, self._node.client, self._node.claims)
                await fetch_images(self.pod, self.folder / "volumes", self._node.reaper)
                mounted = folders.prepare(self.pod, files, self.folder, self._node.claims)
                break
            except (Missing, OSError) as error:
                why = describe_os_error(error) if isinstance(error, OSError) else str(error)
                self._all_wait("CreateContainerConfigError", why)
                self._event("Warning", "FailedMount", why)
            except (ApiError, ClusterError) as error:
                log.debug("pod %s: %s", self._title, error)
            await self._node.clock.sleep(pause)
            pause = min(pause * 2, _RETRY)
        self._renew_tokens(files)
        return PodContext(
            pod={**self.pod, "status": {"podIP": "127.0.0.1", "hostIP": "127.0.0.1", **(self.pod.get("status") or {})}},
            folder=self.folder,
            volumes=mounted,
            sources=files.as_text(),
            ports=self.local_ports,
            node=self._node,
            touch=self._touch,
            event=self._event,
        )

    async def _run_init(self, context: PodContext, policy: str) -> bool:
        """Runs init containers one after the other; a sidecar keeps running. Returns False if one failed for good."""
        specs = dig(self.pod, "spec", "initContainers") or []
        await context.node.warm.prepare_for(self.pod, context.node.images)
        for spec, state in zip(specs, self._init_states, strict=True):
            container = Container(spec, state, context)
            self.containers.append(container)
            if spec.get("restartPolicy") == "Always":
                self._sidecars.append(asyncio.create_task(container.run("Always")))
                await container.has_started.wait()
                continue
            await container.run("Never" if policy == "Never" else "OnFailure")
            if not state.has_succeeded:
                self._touch()
                return False
        return True

    # -- the end ------------------------------------------------------------------------------------------------------

    async def _terminate(self) -> None:
        grace = self._grace()
        began = self._node.clock.monotonic()
        if grace > 0:
            await self._node.drain(list(self.local_ports.values()), max(grace - _END, grace / 2))
        await self._stop_containers(max(0.0, grace - (self._node.clock.monotonic() - began)))
        await self._cancel()
        await self._clean_up()
        with contextlib.suppress(NotFound):
            if finalizers_of(self.pod):  # somebody wants to know how it ended
                await self._until_possible(lambda: self._put(self._last_status()))
            if not dig(self.pod, "metadata", "generateName"):
                await self._node.clock.sleep(max(0.0, _STAYS_IN_SIGHT - (self._node.clock.monotonic() - began)))
            await self._until_possible(self._delete)

    def _last_status(self) -> Object:
        status = self._status(self.pod)
        return {**status, "phase": "Succeeded" if status["phase"] == "Succeeded" else "Failed"}

    async def _delete(self) -> None:
        name, namespace = name_of(self.pod), namespace_of(self.pod)
        await self._node.client.delete(PODS, name, namespace, uid=uid_of(self.pod), grace_seconds=0)

    def _grace(self) -> float:
        for path in (("metadata", "deletionGracePeriodSeconds"), ("spec", "terminationGracePeriodSeconds")):
            seconds = dig(self.pod, *path)
            if seconds is not None:
                return float(seconds)
        return _GRACE

    async def _stop_containers(self, grace: float) -> None:
        await asyncio.gather(*(container.stop(grace) for container in self.containers))

    async def _cancel(self) -> None:
        parts = (self._life, self._writer, self._end, self._events.telling, self._renewal)
        others = (*parts, *self._sidecars, *self._ephemeral.tasks)
        await cancel(*(task for task in others if task is not asyncio.current_task()))
        self._life = self._writer = self._renewal = None  # the traceback of a task's end has this pod in it

    async def _clean_up(self) -> None:
        self._node.ports.release(self.local_ports.values())
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)

    def _now(self) -> str:
        return timestamp(self._node.clock.now())

    # -- the status ---------------------------------------------------------------------------------------------------

    def _touch(self) -> None:
        self._dirty.set()

    def _status(self, pod: Object) -> Object:
        states = self._init_states, self._main_states
        return pod_status(pod, *states, self._started, self._now(), self._ephemeral.states)

    def _all_wait(self, reason: str, message: str) -> None:
        for state in [*self._init_states, *self._main_states, *self._ephemeral.waiting_states()]:
            state.wait(reason, message)
        self._touch()

    def _event(self, kind: str, reason: str, message: str) -> None:
        self._events.record(self.pod, kind, reason, message)

    async def _write_status(self) -> None:
        while True:
            await self._dirty.wait()
            await self._until_possible(self._report)

    async def _report(self) -> None:
        """Writes the status that the pod has by now, if it is another than the last one."""
        self._dirty.clear()
        status = self._status(after_write(self.pod, self._written) if self._written else self.pod)
        if status != self._written:
            await self._put(status)

    async def _put(self, status: Object) -> None:
        patch = {"metadata": {"uid": uid_of(self.pod)}, "status": patch_of(status)}
        name, namespace = name_of(self.pod), namespace_of(self.pod)
        kind = PatchKind.STRATEGIC  # which leaves others their conditions
        await self._node.client.patch(PODS, name, patch, namespace, kind=kind, subresource="status")
        self._written = status

    async def _until_possible(self, attempt: Callable[[], Awaitable[Any]]) -> None:
        """Tries until the API server accepts it, and a bug of ours is over; NotFound is raised: the pod is gone."""
        pause, longest = 0.05, 5.0
        while True:
            try:
                await attempt()
            except NotFound:
                raise
            except (ApiError, ClusterError) as error:
                log.debug("pod %s: %s", self._title, error)
            except Exception:
                log.exception("pod %s", self._title)
                longest = _LONGEST_RETRY
            else:
                return
            await self._node.clock.sleep(pause)
            pause = min(pause * 2, longest)

    def _begin(self, name: str, part: Awaitable[None]) -> asyncio.Task[None]:
        """Starts what goes on until it is done, or the pod is gone."""

        async def run() -> None:
            with contextlib.suppress(NotFound):
                await part

        return asyncio.create_task(run(), name=f"{name} {self._title}")

    @property
    def _title(self) -> str:
        return f"{namespace_of(self.pod)}/{name_of(self.pod)}"
