"""One container: a process that is started, probed, watched and, as the pod's policy says, started again.

Back-off is shorter than a cluster's, because somebody is waiting in front of the screen: at once, then 1, 2, 4 … 60 s.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Coroutine, Iterator
from pathlib import Path
from typing import Any

from isvc.kube.objects import Object, dig, name_of, namespace_of
from isvc.kube.quantity import Quantity
from isvc.kube.timestamps import timestamp
from isvc.local.node.containers import execution, probes
from isvc.local.node.containers.execution import rename_in_tar
from isvc.local.node.containers.launch import Launch, PodContext, launch
from isvc.local.node.containers.state import ContainerState
from isvc.local.node.environment import Missing
from isvc.local.node.processes.logs import Log, last_lines, log_file
from isvc.local.node.processes.process import CannotStart, Exit, Process, in_full, run_beside
from isvc.local.node.programs.images import ImageTableError, Program, UnknownImage
from isvc.local.node.streams.command_streams import Streams
from isvc.toolkit.tasks import cancel, run_together

_BACK_OFF = (0, 1, 2, 4, 8, 16, 32, 60)
_LONGEST_WAIT = 4  # of these, where a start waits for somebody to mend something, who wants to see that it helps
_FORGIVEN_AFTER = 120.0  # a process that ran this long starts anew without delay
_MEMORY_PERIOD = 0.5
_TABLE_PERIOD = 1.0


class NotYet(Exception):
    """The container cannot be made: its files cannot be written, or a path of a volume is not there. Tried again."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class NotRunning(Exception):
    """There is no process to get into."""


class Container:
    def __init__(self, spec: Object, state: ContainerState, context: PodContext) -> None:
        self.spec = spec
        self.name: str = spec["name"]
        self.state = state
        self.log: Log | None = None
        self._context, self._node = context, context.node
        self._folder: Path = context.folder / "containers" / self.name
        self._process: Process | None = None
        self._plan: Launch | None = None
        self._ended = asyncio.Event()
        self.has_started = asyncio.Event()
        self._stopping = False
        self._cause = ""  # why the node itself ended the process
        self._health = ""  # where the program says whether it is ready

    @property
    def pid(self) -> int:
        """Returns the process that runs now; 0 if there is none."""
        return self._process.pid if self._process is not None else 0

    def log_path(self, restarts: int) -> Path:
        return log_file(self._context.folder, self.name, restarts)

    async def run(self, policy: str) -> None:
        """Runs it until it has ended for good. `policy` is the pod's restartPolicy."""
        program = await self._program()
        self._health = program.health
        failures = attempts = 0
        while not self._stopping:
            began = self._node.clock.monotonic()
            try:
                ended = await self._once(program)
            except NotYet as error:
                await self._wait(error, _BACK_OFF[min(attempts + 1, _LONGEST_WAIT)])
                attempts += 1
                continue
            attempts = 0
            if self._stopping or policy == "Never" or (policy == "OnFailure" and ended.code == 0):
                return
            if self._node.clock.monotonic() - began > _FORGIVEN_AFTER:
                failures = 0
            await self._back_off(_BACK_OFF[min(failures, len(_BACK_OFF) - 1)])
            failures += 1
            self.state.restarts += 1

    async def stop(self, grace: float) -> None:
        """Asks the process to end, and makes it after `grace` seconds; the pod's preStop hook comes first."""
        self._stopping = True
        clock = self._node.clock
        began = clock.monotonic()
        await self._pre_stop(grace)
        await self._end_process(max(0.0, grace - (clock.monotonic() - began)))

    async def _pre_stop(self, grace: float) -> None:
        hook = dig(self.spec, "lifecycle", "preStop")
        if not hook or self._plan is None or self._process is None:
            return
        answer = await self._asker(self._plan).act(hook, max(grace, 1))
        if not answer.ok:
            self._context.event("Warning", "FailedPreStopHook", f"PreStopHook failed: {answer.message}")

    async def _end_process(self, grace: float) -> None:
        process = self._process
        if process is None:
            return
        process.terminate()
        try:
            async with asyncio.timeout(grace):
                await self._ended.wait()
        except TimeoutError:
            process.kill()
            await self._ended.wait()

    # -- what clients ask for -----------------------------------------------------------------------------------------

    async def execute(self, words: list[str], streams: Streams, *, tty: bool) -> Exit:
        """Runs a command beside the process. Raises NotRunning or CannotStart."""
        plan = self.running_plan()
        translated = rename_in_tar(words, plan.translation.words(words))
        command = execution.Command(translated, plan.env, plan.folder, plan.policy, tty)
        return await execution.run(command, streams, self._node.reaper, self._ended)

    async def attach(self, streams: Streams) -> None:
        """Passes on what the process writes, until its end, and what the client sends to it. Raises NotRunning."""
        self.running_plan()
        inputs = asyncio.gather(*self._inputs(streams))
        try:
            await self._show_output(streams)
        finally:
            await cancel(inputs)

    def _inputs(self, streams: Streams) -> Iterator[Coroutine[Any, Any, None]]:
        stdin = self._process.stdin if self._process is not None else None
        if "stdin" in streams:
            if stdin is not None and self.spec.get("stdin"):
                yield stdin.feed(streams["stdin"], once=bool(self.spec.get("stdinOnce")))
            else:
                streams["stdin"].ignore()
        if "resize" in streams:
            if stdin is not None:
                yield stdin.resize(streams["resize"])
            else:
                streams["resize"].ignore()

    async def _show_output(self, streams: Streams) -> None:
        assert self.log is not None
        output = streams.get("stdout") or streams.get("stderr")
        async for chunk in self.log.follow():
            if output is not None:
                await output.write(chunk)

    def running_plan(self) -> Launch:
        """Returns how the process was started that runs now. Raises NotRunning."""
        if self._process is None or self._plan is None:
            raise NotRunning(f"container {self.name} is not running")
        return self._plan

    # -- one start ----------------------------------------------------------------------------------------------------

    async def _program(self) -> Program:
        """Returns the local program of its image, for which it waits."""
        image, images = self.spec.get("image", ""), self._node.images
        reported = ""
        while True:
            try:
                return images.get(image)
            except UnknownImage as error:
                message = f"{error}, or start with --simulate to treat such pods as ready"
            except (ImageTableError, OSError) as error:
                message = str(error)
            if message != reported:
                reported = message
                self.state.wait("ErrImageNeverPull", message)
                self._context.event("Warning", "ErrImageNeverPull", message)
                self._context.touch()
            await self._node.clock.sleep(_TABLE_PERIOD)

    async def _once(self, program: Program) -> Exit:
        termination_log = self._folder / "termination-log"
        self._cause = ""
        started = self._now()
        try:
            log = self.log = Log(self.log_path(self.state.restarts))
            termination_log.write_bytes(b"")
            plan = launch(self.spec, program, self._context, termination_log)
            starting = Process.start(
                plan.command,
                plan.env,
                plan.folder,
                log,
                self._node.reaper,
                plan.policy,
                self._node.warm.fork,
                stdin=bool(self.spec.get("stdin")),
                tty=bool(self.spec.get("tty")),
            )
            process = await in_full(starting, Process.end)
        except CannotStart as error:
            return self._did_not_start(error, log, started)
        except Missing as error:
            raise NotYet("CreateContainerConfigError", str(error)) from error
        except OSError as error:
            raise NotYet("CreateContainerError", describe_os_error(error)) from error
        self._process, self._plan = process, plan
        self._ended.clear()
        self.state.run(started, process.pid)
        self._context.event("Normal", "Started", f"Started container {self.name}")
        watchers = self._watchers(plan, process)
        try:
            ended = await process.wait()
        except asyncio.CancelledError:
            await process.end()
            raise
        finally:
            for watcher in watchers:
                watcher.cancel()
            self._process = None
            self._ended.set()
        message = _read_message(termination_log)
        if ended.code != 0:
            message = "\n".join(part for part in (self._cause, message or last_lines(log.path)) if part)
        reason = "Completed" if ended.code == 0 else "OOMKilled" if "memory limit" in self._cause else "Error"
        self.state.end(self._termination(ended, reason, message, started))
        self._context.touch()
        return ended

    def _did_not_start(self, error: Exception, log: Log, started: str) -> Exit:
        log.note(str(error))
        log.close()
        self.state.end(self._termination(Exit(128), "StartError", str(error), started))
        self._context.event("Warning", "Failed", f"Error: {error}")
        self._context.touch()
        return Exit(128)

    def _termination(self, ended: Exit, reason: str, message: str, started: str) -> Object:
        state: Object = {"exitCode": ended.code, "reason": reason, "startedAt": started, "finishedAt": self._now()}
        if ended.signal:
            state["signal"] = ended.signal
        if message:
            state["message"] = message
        return state

    async def _back_off(self, seconds: int) -> None:
        if not seconds:
            return
        pod = f"{name_of(self._context.pod)}_{namespace_of(self._context.pod)}"
        self.state.wait("CrashLoopBackOff", f"back-off {seconds}s restarting failed container={self.name} pod={pod}")
        self._context.event("Warning", "BackOff", f"Back-off restarting failed container {self.name} in pod {pod}")
        self._context.touch()
        await self._node.clock.sleep(seconds)

    async def _wait(self, why: NotYet, seconds: int) -> None:
        self.state.wait(why.reason, str(why))
        self._context.event("Warning", "Failed", f"Error: container {self.name} cannot be started: {why}")
        self._context.touch()
        await self._node.clock.sleep(seconds)

    def _now(self) -> str:
        return timestamp(self._node.clock.now())

    # -- while it runs ------------------------------------------------------------------------------------------------

    def _watchers(self, plan: Launch, process: Process) -> list[asyncio.Task[None]]:
        watchers = [self._probe(self._asker(plan))]
        if limit := dig(self.spec, "resources", "limits", "memory"):
            watchers.append(self._limit_memory(process, float(Quantity.parse(limit)), str(limit)))
        return [asyncio.create_task(watcher) for watcher in watchers]

    def _asker(self, plan: Launch) -> probes.Asker:
        def run_words(words: list[str]) -> Awaitable[tuple[int, str]]:
            return run_beside(plan.translation.words(words), plan.env, plan.folder, self._node.reaper, plan.policy)

        return probes.Asker(self.spec, plan.translation.ports, run_words)

    async def _probe(self, asker: probes.Asker) -> None:
        if not await self._post_start(asker):
            return
        startup, readiness, liveness = (self.spec.get(f"{kind}Probe") for kind in ("startup", "readiness", "liveness"))
        if startup:
            self._context.touch()
            await self._must_pass(asker, startup, "Startup", once=True)
        self.state.started = True
        self.has_started.set()
        self.state.ready = readiness is None
        self._context.touch()
        asked = []
        if readiness:
            asked.append(self._follow(asker, probes.over_http(readiness, self.spec, self._health)))
        if liveness:
            asked.append(self._must_pass(asker, liveness, "Liveness"))
        await run_together(*asked)

    async def _post_start(self, asker: probes.Asker) -> bool:
        """Does the pod's own work after the start of the process, which ends if that fails."""
        hook = dig(self.spec, "lifecycle", "postStart")
        answer = await asker.act(hook, None) if hook else probes.Answer(True)
        if not answer.ok:
            self._context.event("Warning", "FailedPostStartHook", f"PostStartHook failed: {answer.message}")
            await self._give_up(f"PostStartHook failed: {answer.message}")
        return answer.ok

    async def _give_up(self, cause: str) -> None:
        self._cause = cause
        grace = dig(self._context.pod, "spec", "terminationGracePeriodSeconds")
        await asyncio.shield(asyncio.ensure_future(self._end_process(30 if grace is None else grace)))

    def _next_word(self) -> asyncio.Event:
        assert self.log is not None  # while it runs
        return self.log.next_growth()

    async def _follow(self, asker: probes.Asker, probe: Object) -> None:
        tally = probes.Tally(probe)
        async for answer in probes.answers(probe, asker.ask, self._next_word):
            verdict = tally.hear(answer.ok)
            if verdict is not None and verdict != self.state.ready:
                self.state.ready = verdict
                self._context.touch()
            if not answer.ok:
                self._context.event("Warning", "Unhealthy", f"Readiness probe failed: {answer.message}")

    async def _must_pass(self, asker: probes.Asker, probe: Object, kind: str, *, once: bool = False) -> None:
        """Ends the process when the probe fails too often; with `once` returns when it has passed."""
        tally = probes.Tally(probe)
        async for answer in probes.answers(probe, asker.ask, self._next_word if once else None):
            verdict = tally.hear(answer.ok)
            if once and verdict:
                return
            if not answer.ok:
                self._context.event("Warning", "Unhealthy", f"{kind} probe failed: {answer.message}")
            if verdict is False:
                self._context.event("Normal", "Killing", f"Container {self.name} failed {kind.lower()} probe")
                await self._give_up(f"{kind} probe failed: {answer.message}")
                return

    async def _limit_memory(self, process: Process, limit: float, text: str) -> None:
        while True:
            if process.memory() > limit:
                self._cause = f"the process used more than its memory limit of {text}"
                process.kill()
                return
            await asyncio.sleep(_MEMORY_PERIOD)


def describe_os_error(error: OSError) -> str:
    """Returns what went wrong with a file, and with which: `no space left on device: /home/me/.isvc/pods/…`."""
    said = (error.strerror or str(error)).lower()
    return f"{said}: {error.filename}" if error.filename else said


def _read_message(path: Path) -> str:
    """Returns the end of a termination message, however much the container has written."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 4096))
            return file.read(4096).decode(errors="replace").strip()
    except OSError:
        return ""
