"""What Azure's two stores share: how their addresses are read, who we are, and what their errors mean."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from isvc.pods.stores.errors import Denied, Interrupted, StorageError, from_http_status, need
from isvc.pods.stores.settings import Settings

_PIECE: Final = 1 << 20


class Place(NamedTuple):
    """An account's address (with its signature, if the URI has one), a container or share, and a path in it."""

    account_url: str
    container: str
    prefix: str


def parse(uri: str, settings: Settings) -> Place:
    parts = urlsplit(uri)
    container, _, prefix = unquote(parts.path).lstrip("/").partition("/")
    if not container:
        raise StorageError(f"{uri} names no container")
    host = settings.get("AZURE_SERVICE_URL", f"{parts.scheme}://{parts.netloc}")
    return Place(host + (f"?{parts.query}" if parts.query else ""), container, prefix.strip("/"))


def credential(settings: Settings, account: str = "") -> Any:
    """Returns a service principal or workload identity, an access token, or the account's key; None asks as a stranger.

    A key needs the account's name, where its address does not tell it.
    """
    for name in ("TENANT_ID", "CLIENT_ID", "CLIENT_SECRET"):
        if settings.get(f"AZ_{name}"):
            os.environ[f"AZURE_{name}"] = settings.get(f"AZ_{name}")
    if settings.get("AZURE_ACCESS_TOKEN"):
        return _Token(settings.get("AZURE_ACCESS_TOKEN"), settings.number("AZURE_ACCESS_EXPIRES_ON_SECONDS", 1 << 40))
    if settings.get("AZURE_CLIENT_ID") or settings.get("AZ_CLIENT_ID"):
        return need("azure.identity", "azure").DefaultAzureCredential()
    key = settings.get("AZURE_STORAGE_ACCESS_KEY")
    return {"account_name": account, "account_key": key} if key and account else key or None


class _Token:
    """A token that somebody else obtained."""

    def __init__(self, token: str, expires_on: int) -> None:
        self._token, self._expires_on = token, expires_on

    def get_token(self, *scopes: str, **options: Any) -> Any:
        return need("azure.core.credentials", "azure").AccessToken(self._token, self._expires_on)


def extent(start: int, end: int | None) -> dict[str, int]:
    """Returns the options for a part; Azure has no range that starts where a blob ends."""
    if end is not None:
        return {"offset": start, "length": end - start}
    return {"offset": start} if start else {}


def chunks(stream: Any, where: str) -> Iterator[bytes]:
    """Yields content in pieces of a size that is good for writing."""
    with explain_errors(where):
        for chunk in stream.chunks():
            for start in range(0, len(chunk), _PIECE):
                yield chunk[start : start + _PIECE]


@contextmanager
def explain_errors(where: str) -> Iterator[None]:
    """Turns Azure's errors into ours."""
    exceptions = need("azure.core.exceptions", "azure")
    try:
        yield
    except exceptions.ClientAuthenticationError as error:
        raise Denied(f"{where}: {error.message}") from error
    except exceptions.HttpResponseError as error:
        raise from_http_status(error.status_code or 500, where, error.reason or "") from error
    except (exceptions.AzureError, OSError) as error:
        raise Interrupted(f"{where}: {error}") from error
