"""What a container would see differently on this machine, translated in its command, arguments and environment.

Mount paths: `/mnt/models` in `--model_dir=/mnt/models` becomes the pod's own folder. Ports: every container port of a
pod gets a free port of this machine, which takes its place in `--http_port=8080`, `--port 8080`, `0.0.0.0:8080` and in
variables such as HTTP_PORT=8080. Both tables are also in the environment, as ISVC_MOUNTS and ISVC_PORTS, for programs
that want to look.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from isvc.kube.objects import Object, dig

DEFAULT_PORT = 8080

_PORT_FLAG = re.compile(r"-{1,2}[\w.-]*port", re.IGNORECASE)
# Also within a script. It begins where a word does: to try each of its hyphens would take minutes for a long key.
_PORT_FLAG_VALUE = re.compile(r"((?<![\w.-])[\w.]*-[\w.-]*port(?:=|\s+))(\d{2,5})\b", re.IGNORECASE)
_ADDRESS = re.compile(
    r"((?:^|(?<=[\s=/,@]))(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::\]|\[::1\]|\*)?:)(\d{2,5})(?=$|[/\s,?])"
)
_PLACEHOLDER = re.compile(r"\{port(?::(\d+))?\}")
_PROBES = ("readinessProbe", "livenessProbe", "startupProbe")


@dataclass(frozen=True, slots=True)
class Translation:
    ports: Mapping[int, int] = field(default_factory=dict)
    mounts: Mapping[str, str] = field(default_factory=dict)  # mount path → folder

    def words(self, words: Sequence[str]) -> list[str]:
        """Returns a command line, translated word by word; a flag's value may be the word after it."""
        translated: list[str] = []
        for index, word in enumerate(words):
            is_port = word.isdigit() and index > 0 and bool(_PORT_FLAG.fullmatch(words[index - 1]))
            translated.append(self._port(word) if is_port else self.text(word))
        return translated

    def text(self, text: str) -> str:
        text = _PLACEHOLDER.sub(self._placeholder, text)
        text = _PORT_FLAG_VALUE.sub(lambda found: found[1] + self._port(found[2]), text)
        text = _ADDRESS.sub(lambda found: found[1] + self._port(found[2]), text)
        return self.paths(text)

    def paths(self, text: str) -> str:
        """Replaces all at once: the folder of one mount path may lie below another mount path, such as /tmp."""
        mounts = {mount.rstrip("/"): folder for mount, folder in self.mounts.items() if mount in text}
        if not mounts:
            return text
        longest_first = "|".join(re.escape(mount) for mount in sorted(mounts, key=len, reverse=True))
        pattern = rf"(?<![\w/.\-])({longest_first})(?=$|[/:;,\s'\")\]}}}}])"
        return re.sub(pattern, lambda found: mounts[found[1]], text)

    def variable(self, name: str, value: str) -> str:
        return self._port(value) if value.isdigit() and "PORT" in name.upper() else self.text(value)

    def _port(self, text: str) -> str:
        return str(self.ports.get(int(text), text))

    def _placeholder(self, found: re.Match[str]) -> str:
        wanted = int(found[1]) if found[1] else next(iter(self.ports), DEFAULT_PORT)
        return str(self.ports.get(wanted, wanted))


def container_ports(pod: Object) -> list[int]:
    """Returns every port that containers may listen on: declared, probed or given to a flag; 8080 if there is none."""
    found: dict[int, None] = {}
    for container in dig(pod, "spec", "containers") or []:
        found.update(dict.fromkeys(_ports_of(container)))
    return list(found) or [DEFAULT_PORT]


def _ports_of(container: Object) -> Iterable[int]:
    for port in container.get("ports") or []:
        yield port["containerPort"]
    for kind in _PROBES:
        for action in ("httpGet", "tcpSocket", "grpc"):
            port = dig(container, kind, action, "port")
            if isinstance(port, int):
                yield port
    words = [*(container.get("command") or []), *(container.get("args") or [])]
    for index, word in enumerate(words):
        for _, port in _PORT_FLAG_VALUE.findall(word):
            yield int(port)
        if word.isdigit() and index and _PORT_FLAG.fullmatch(words[index - 1]):
            yield int(word)
