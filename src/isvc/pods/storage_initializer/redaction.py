"""Keep secrets out of everything that the program writes: its log, tracebacks and the termination message.

Signatures and passwords stand in the query and before the @ of an address; client libraries quote addresses, and
sometimes headers, in their errors. So the text is cleaned where it leaves the program, whoever wrote it.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote, urlsplit

MASK: Final = "***"
SHORTEST: Final = 6  # a shorter value is no secret, and would mask words
_SECRET_NAME: Final = re.compile(
    r"secret|token|passw|credential|signature|_key\b|access_key|headers$|^(TLS_KEY|auth)$", re.IGNORECASE
)
# It begins where a scheme does and nowhere within: otherwise the time it takes would grow with a text's square.
_ADDRESS: Final = re.compile(r"""(?<![a-z0-9+.-])([a-z0-9+.-]+:/{1,2})([^\s'"<>?#]*)([?#][^\s'"<>]*)?""", re.IGNORECASE)
# A path and query without their host, as http libraries name them: /model.bin?sig=…
_QUERY: Final = re.compile(r"""(?<=[\w/])\?[\w.~%-]+=[^\s'"<>]*""")


class Redaction:
    """Masks secrets in text: every query and user in an address, and known values wherever they stand."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        lines = {line.strip() for secret in secrets for line in (secret, *secret.splitlines())}
        forms = {form for line in lines for form in (line, quote(line, safe=""), unquote(line))}
        known = sorted((form for form in forms if len(form) >= SHORTEST), key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, known))) if known else None

    @classmethod
    def of(cls, sources: Iterable[str], environment: Mapping[str, str]) -> Redaction:
        return cls([*(secret for uri in sources for secret in _in_address(uri)), *_in_environment(environment)])

    def __call__(self, text: str) -> str:
        text = _QUERY.sub(f"?{MASK}", _ADDRESS.sub(_without_secrets, text))
        return self._known.sub(MASK, text) if self._known else text


class RedactingFormatter(logging.Formatter):
    """A log format whose whole result, tracebacks included, is redacted."""

    def __init__(self, pattern: str, redact: Redaction) -> None:
        super().__init__(pattern)
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        return self._redact(super().format(record))


def _without_secrets(found: re.Match[str]) -> str:
    scheme, rest, query = found.groups()
    authority, slash, path = rest.partition("/")
    user, at, host = authority.rpartition("@")
    shown = f"{scheme}{MASK if user else ''}{at}{host}{slash}{path}"
    return f"{shown}{query[0]}{MASK}" if query and len(query) > 1 else shown


def _in_address(uri: str) -> Iterator[str]:
    parts = urlsplit(uri)
    yield parts.query
    yield parts.netloc.rpartition("@")[0]
    yield parts.netloc.rpartition("@")[0].partition(":")[2]
    for _, value in parse_qsl(parts.query):
        yield value


def _in_environment(environment: Mapping[str, str]) -> Iterator[str]:
    for name, value in environment.items():
        if name in ("STORAGE_CONFIG", "STORAGE_OVERRIDE_CONFIG"):
            yield from _in_json(value)
        elif _SECRET_NAME.search(name):
            yield value
            yield from (line.partition(":")[2].strip() for line in value.splitlines())
            yield from _leaves(value)


def _in_json(text: str) -> Iterator[str]:
    document = _parse(text)
    if isinstance(document, dict):
        for name, value in document.items():
            if _SECRET_NAME.search(name):
                yield str(value)
                yield from _leaves(str(value))


def _leaves(text: str) -> Iterator[str]:
    """Yields the values of a JSON map of headers."""
    document = _parse(text)
    if isinstance(document, dict):
        yield from map(str, document.values())


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
