"""Which image runs as which local program: a small table, which `~/.isvc/images.yaml` extends.

    images:
      example.com/team/my-transformer:
        command: [python, /home/me/transformer.py, --http_port, "{port}"]
        env: {LOG_LEVEL: debug}
        workingDir: /home/me

A key is an image name without its tag; `*` stands for anything, and leading parts (a registry) may be left out. The
command replaces that of the image and of the pod, the pod's args follow it; an empty command runs the pod's own
command on this machine. `{port}` is the pod's first port and `{port:9000}` the one for container port 9000. `python`,
where a command says so, is the interpreter that isvc runs with, unless the table names another.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Program:
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    working_dir: str = ""
    python: str = ""  # the interpreter that `python` is; that of isvc if it is empty
    default: tuple[str, ...] = ()  # what runs where neither the table nor the pod has a command
    health: str = ""  # the path at which its HTTP port says whether it is ready
    stands_for: str = ""  # a program of the image by whose name the pod's own command may start this one


class UnknownImage(Exception):
    """There is no local program for an image; says where to name one."""


class ImageTableError(Exception):
    """The user's table cannot be read; says where and why."""


_HEALTH_PATHS = {"isvc.pods.modelserver": "/v2/health/ready", "isvc.pods.llmserver": "/health"}


def _model_server(*flags: str) -> Program:
    command = (sys.executable, "-m", "isvc.pods.modelserver", "--host=127.0.0.1", *flags)
    return Program(command, health=_health_path(command))


def _health_path(command: Sequence[str]) -> str:
    """Returns where our own servers say whether they are ready, whichever interpreter runs them."""
    return next((path for module, path in _HEALTH_PATHS.items() if module in command), "")


STORAGE_INITIALIZER = Program((sys.executable, "-m", "isvc.pods.storage_initializer"))
_VLLM = Program(
    (sys.executable, "-m", "isvc.pods.llmserver"),
    {"ISVC_MODEL_DIR": "/mnt/models"},
    health=_HEALTH_PATHS["isvc.pods.llmserver"],
    stands_for="vllm",
)
# The gateway knows at once that a pod ends: there is no load balancer to wait for.
_ROUTER = Program((sys.executable, "-m", "isvc.pods.router", "--host=127.0.0.1", "--port={port}", "--drain-seconds=0"))
_PICKER = Program((sys.executable, "-m", "isvc.local.pod_programs.endpoint_picker"), stands_for="epp")
_PREFILL_SIDECAR = Program((sys.executable, "-m", "isvc.local.pod_programs.prefill_sidecar"), stands_for="pd-sidecar")
_LATENCY_PREDICTOR = Program((sys.executable, "-m", "isvc.local.pod_programs.latency_predictor"))
_EVENT_DISPLAY = Program((sys.executable, "-m", "isvc.local.pod_programs.event_display"))
_AGENT = Program(
    (
        sys.executable,
        "-m",
        "isvc.pods.agent",
        "--host=127.0.0.1",
        "--port={port:9081}",
        "--metrics-port=0",
        "--drain-seconds=0",
    )
)

BUILT_IN: dict[str, Program] = {
    "kserve/sklearnserver": _model_server("--framework=sklearn"),
    "kserve/xgbserver": _model_server("--framework=xgboost"),
    "kserve/lgbserver": _model_server("--framework=lightgbm"),
    "kserve/pmmlserver": _model_server("--framework=pmml"),
    "kserve/predictiveserver": _model_server(),
    "seldonio/mlserver": _model_server(),
    "kserve/huggingfaceserver": replace(_VLLM, command=(*_VLLM.command, "--port={port:8080}")),
    "*vllm*": _VLLM,
    **dict.fromkeys(
        [f"llm-d/llm-d-{build}*" for build in ("aws", "cpu", "cuda", "dev", "gke", "hpu", "rocm", "xpu")], _VLLM
    ),
    **dict.fromkeys(["llm-d/llm-d-*endpoint-picker*", "llm-d/llm-d-inference-scheduler*", "*/epp"], _PICKER),
    **dict.fromkeys(["llm-d/llm-d-*sidecar*"], _PREFILL_SIDECAR),
    "llm-d/llm-d-latency-predictor-*": _LATENCY_PREDICTOR,
    "kserve/storage-initializer": STORAGE_INITIALIZER,
    "kserve/router": _ROUTER,
    "kserve/agent": _AGENT,
    "isvc/modelserver": _model_server(),
    "isvc/torchscriptserver": _model_server("--framework=pytorch"),
    "*/event_display": _EVENT_DISPLAY,
    "python": Program(default=("python",)),
    **dict.fromkeys(["alpine", "busybox", "debian", "ubuntu"], Program(default=("sh",))),
}


class ImageTable:
    """The built-in programs and the user's, whose files are read again when they have changed.

    `~/.isvc/images.yaml` comes last; each environment that `isvc runtime add` made has a table of its own.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._programs: Mapping[str, Program] = BUILT_IN
        # The time of change is not enough: a file may be seen while it is being written, within one tick of the clock.
        self._read: list[tuple[Path, int, int, int]] = []

    def find(self, image: str) -> Program | None:
        """Returns the program for an image: the most specific key that fits."""
        self._renew()
        return _most_specific(self._programs, image)

    def get(self, image: str) -> Program:
        """Returns the program for an image; raises UnknownImage where there is none."""
        if program := self.find(image):
            return program
        raise UnknownImage(f'no local program is known for image "{image}": add it to {self.path}')

    def _renew(self) -> None:
        tables = [*sorted(self.path.parent.glob("runtimes/*/images.yaml")), self.path]
        found = [(path, path.stat()) for path in tables if path.exists()]
        state = [(path, stat.st_mtime_ns, stat.st_size, stat.st_ino) for path, stat in found]
        if state != self._read:
            users = [parse(path.read_text(), str(path)) for path, _ in found]
            self._programs = {image: program for table in (BUILT_IN, *users) for image, program in table.items()}
            self._read = state


def is_llm_server(image: str) -> bool:
    """Returns whether the LLM server runs for this image, unless the user's table names another program."""
    program = _most_specific(BUILT_IN, image)
    return program is not None and program.stands_for == _VLLM.stands_for


def _most_specific(programs: Mapping[str, Program], image: str) -> Program | None:
    name = image_name(image)
    fitting = [key for key in programs if fits(key, name)]
    return programs[max(fitting, key=lambda key: ("*" not in key, len(key)))] if fitting else None


def image_name(image: str) -> str:
    """Returns `registry/repo/name` without tag and digest."""
    name = image.partition("@")[0]
    head, slash, tail = name.rpartition("/")
    return head + slash + tail.partition(":")[0]


def fits(key: str, name: str) -> bool:
    return fnmatchcase(name, key) or fnmatchcase(name, f"*/{key}")


def parse(text: str, where: str) -> dict[str, Program]:
    import yaml

    try:
        document = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise ImageTableError(f"{where}: {error}") from None
    images = document.get("images", {}) if isinstance(document, dict) else None
    if not isinstance(images, dict):
        raise ImageTableError(f"{where}: expected a map `images` of image names to programs")
    return {str(key): _program(f"{where}: images.{key}", value) for key, value in images.items()}


def _program(where: str, value: Any) -> Program:
    if not isinstance(value, dict):
        raise ImageTableError(f"{where}: expected a map with command, env, workingDir and python")
    unknown = set(value) - {"command", "env", "workingDir", "python"}
    if unknown:
        raise ImageTableError(f"{where}: unknown field {', '.join(sorted(unknown))}")
    command = value.get("command") or []
    if not isinstance(command, list):
        raise ImageTableError(f"{where}.command: expected a list of strings")
    env = {str(name): str(text) for name, text in (value.get("env") or {}).items()}
    working_dir, python = str(value.get("workingDir") or ""), str(value.get("python") or "")
    words = tuple(str(part) for part in command)
    return Program(words, env, working_dir, python, health=_health_path(words))
