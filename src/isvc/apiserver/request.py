"""Who asks for what: a request as the pipeline sees it, and as admission webhooks see it."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import Literal, NamedTuple
from urllib.parse import parse_qsl

from isvc.apiserver.resources.description import Description
from isvc.apiserver.target import Target
from isvc.kube.errors import BadRequest
from isvc.kube.objects import Object
from isvc.wire.http1 import message

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


class User(NamedTuple):
    username: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: dict[str, list[str]] = {}  # noqa: RUF012

    def info(self) -> Object:
        """Returns the user as `userInfo` in an admission review."""
        info: Object = {"username": self.username, "groups": list(self.groups)}
        if self.uid:
            info["uid"] = self.uid
        if self.extra:
            info["extra"] = self.extra
        return info


class Request(message.Request):
    """A request of an authenticated user, with the warnings that its response will carry."""

    __slots__ = ("_query", "began", "target", "user", "warnings")

    def __init__(self, method: str, path: str, query_string: str, headers: dict[str, str], body: bytes) -> None:
        super().__init__(method, path, query_string, headers, body)
        self.began = time.perf_counter()
        self.target: Target | None = None  # None for what is no resource
        self.user: User | None = None
        self.warnings: list[str] = []
        self._query: dict[str, str] | None = None

    @property
    def query(self) -> dict[str, str]:
        """Returns the first value of every parameter."""
        if self._query is None:
            pairs = parse_qsl(self.query_string, keep_blank_values=True) if self.query_string else []
            self._query = dict(reversed(pairs))
        return self._query

    def flag(self, name: str) -> bool:
        return self.query.get(name, "").lower() in ("true", "1", "t")

    def integer(self, name: str) -> int:
        """Returns a number of the query; 0 where there is none. Raises BadRequest, in Go's words, for other text."""
        text = self.query.get(name, "")
        if text and not re.fullmatch(r"-?\d{1,18}", text, re.ASCII):
            raise BadRequest(f'strconv.ParseInt: parsing "{text}": invalid syntax')
        return int(text or 0)

    @property
    def accept(self) -> str:
        return self.headers.get("accept", "")

    @property
    def user_agent(self) -> str:
        return self.headers.get("user-agent", "")

    def warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)


@dataclass(slots=True)
class Call:
    """A request on a resource: what the path, the query and the headers amount to."""

    request: Request
    description: Description
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    dry_run: bool = False
    field_manager: str = ""
    field_validation: str = "Warn"

    @property
    def user(self) -> User:
        assert self.request.user is not None
        return self.request.user

    @property
    def manager(self) -> str:
        """Returns the name under which this request owns fields: what it says, or the program's name."""
        return self.field_manager or self.request.user_agent.split("/", 1)[0][:128] or "unknown"


@dataclass(slots=True)
class AdmissionRequest:
    """One write as admission sees it."""

    operation: Operation
    description: Description
    name: str
    namespace: str
    user: User
    subresource: str = ""
    dry_run: bool = False
    options: Object = field(default_factory=dict)
    #: Whatever is appended here reaches the client as a Warning header.
    warnings: list[str] = field(default_factory=list)
