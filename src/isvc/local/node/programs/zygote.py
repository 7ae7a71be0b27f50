"""A process that has imported frameworks and forks a model server whenever the node asks for one (Linux).

`python -m isvc.local.node.programs.zygote FD`: whatever is asked for comes first; when nothing is, and no other process
waits for a core, it imports what servers will need, a module at a time. Requests come over the socket FD as JSON, with
the file that takes the server's output; answers tell what became of them, with a pidfd of the server, and later how it
ended. A server is what a program that was started anew would be: it has a session, an environment, a folder and a
confinement of its own. What it shares with the others is the memory of the imported modules.

Nothing but imports happens in this process, and no thread runs: both would not survive a fork.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import selectors
import signal
import socket
import sys
from collections import deque
from pathlib import Path
from typing import Any, NoReturn

import orjson

from isvc.local.node.sandbox.policy import Policy, confinement

MESSAGE = 1 << 18  # bytes
_SERVER = ("isvc.pods.modelserver.program", "aiohttp", "isvc.pods.modelserver.app", "isvc.pods.modelserver.formats")
# scikit-learn imports the first ones itself: what is asked for meanwhile waits for the one at hand, not for all.
_SKLEARN = ("numpy", "joblib", "scipy.sparse", "scipy.optimize", "scipy.stats", "pandas", "sklearn")
_FRAMEWORKS = {
    "sklearn": _SKLEARN,
    "xgboost": ("xgboost",),
    "lightgbm": ("lightgbm",),
    "mlflow": _SKLEARN,  # what most of its models need
    "pmml": ("sklearn_pmml_model",),
}
_PARTS = tuple(f"sklearn.{name}" for name in ("svm", "pipeline", "tree", "linear_model", "ensemble", "compose"))
_AHEAD = (*_SERVER, *_SKLEARN, *_PARTS, "xgboost", "lightgbm")
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.01, 0.1  # seconds until the next look at a busy machine


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the node decides, by closing the socket
    gc.disable()  # what is imported stays
    _Zygote(socket.socket(fileno=int(sys.argv[1]))).serve()


def is_idle() -> bool:
    """Returns whether no other process of this machine waits for a core at this moment."""
    try:
        running = Path("/proc/loadavg").read_text().split()[3]  # such as 2/345: of 345 threads, this and another run
    except (OSError, IndexError):
        return False
    return int(running.partition("/")[0]) - 1 <= (os.cpu_count() or 1)


class _Zygote:
    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._ahead = deque(_AHEAD)
        self._tried: set[str] = set()
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ)

    def serve(self) -> None:
        pause = 0.0
        while True:
            events = self._selector.select(pause if self._ahead else None)
            if not events:
                pause = 0.0 if self._import_next() else min(max(2 * pause, _SHORTEST_PAUSE), _LONGEST_PAUSE)
            for key, _ in events:
                if key.fileobj is not self._control:
                    self._report_end(key.fd, key.data)
                elif not self._request():
                    return

    def _import_next(self) -> bool:
        """Imports the next module ahead of need; returns False where others need the cores."""
        if not is_idle():
            return False
        self._import(self._ahead.popleft())
        if not self._ahead:
            gc.collect()
        return True

    def _import(self, *names: str) -> None:
        """Leaves what is not there, or is broken, to the server that needs it, and to its words."""
        for name in names:
            if name not in self._tried:
                self._tried.add(name)
                with contextlib.suppress(Exception, SystemExit):
                    importlib.import_module(name)

    def _request(self) -> bool:
        message, files, _, _ = socket.recv_fds(self._control, MESSAGE, 1)
        if not message:
            return False
        request = orjson.loads(message)
        self._import(*_SERVER, *_FRAMEWORKS[request["framework"]])
        if not files:
            return True
        pid, problem = self._fork(request, files[0])
        os.close(files[0])
        answer = orjson.dumps({"id": request["id"], "pid": pid, "problem": problem})
        if problem:
            os.waitpid(pid, 0)
            self._control.send(answer)
            return True
        pidfd = os.pidfd_open(pid)
        socket.send_fds(self._control, [answer], [pidfd])
        self._selector.register(pidfd, selectors.EVENT_READ, pid)
        return True

    def _fork(self, request: dict[str, Any], output: int) -> tuple[int, str]:
        """Returns the server's process, once it has a session of its own, and what kept it from starting."""
        read_end, write_end = os.pipe()
        gc.freeze()  # pages that the collector never writes to stay shared
        pid = os.fork()
        if pid == 0:
            _become(request, output, write_end)
        os.close(write_end)
        with os.fdopen(read_end, "rb") as report:
            return pid, report.read().decode()

    def _report_end(self, pidfd: int, pid: int) -> None:
        self._selector.unregister(pidfd)
        os.close(pidfd)
        _, status = os.waitpid(pid, 0)
        self._control.send(orjson.dumps({"pid": pid, "returncode": os.waitstatus_to_exitcode(status)}))


def _become(request: dict[str, Any], output: int, report: int) -> NoReturn:
    """Lives the life of a forked server, which never returns into the zygote's."""
    gc.enable()
    code = 1
    try:
        try:
            _prepare(request, output, report)
        except Exception as error:
            os.write(report, f"{type(error).__name__}: {error}".encode())
            os._exit(1)
        os.close(report)
        code = _serve(request["arguments"])
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _prepare(request: dict[str, Any], output: int, report: int) -> None:
    os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, write_through=True)  # type: ignore[union-attr]
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.path[0] = request["folder"]  # where `python -m` would look first
    with confinement(policy_from(request["policy"])) as confine:
        if confine is not None:
            confine()
    os.closerange(3, report)  # above all the socket to the node
    os.closerange(report + 1, os.sysconf("SC_OPEN_MAX"))


def _serve(arguments: list[str]) -> int:
    from isvc.pods.modelserver.program import main as serve

    sys.argv = ["isvc.pods.modelserver", *arguments]
    _set_threads(int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1))
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed()  # all forks would draw the same numbers
    return serve(arguments)


def _set_threads(count: int) -> None:
    """Sets threads again: numerical libraries read the environment when the zygote loaded them, with one thread."""
    with contextlib.suppress(ImportError):
        importlib.import_module("threadpoolctl").threadpool_limits(count)


def policy_from(given: dict[str, Any] | None) -> Policy | None:
    if given is None:
        return None
    connects = given["connects"]
    return Policy(
        readable=tuple(map(Path, given["readable"])),
        writable=tuple(map(Path, given["writable"])),
        listens=tuple(given["listens"]),
        connects=None if connects is None else tuple(connects),
    )


if __name__ == "__main__":
    main()
