"""Google Cloud Storage, through Google's client library."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import urlsplit

from isvc.pods.stores.errors import Denied, Interrupted, from_http_status, need
from isvc.pods.stores.settings import Settings
from isvc.wire.failures import message_of

_ENDPOINT: Final = "https://storage.googleapis.com"


def host_of(settings: Settings) -> str:
    return urlsplit(settings.get("STORAGE_EMULATOR_HOST") or _ENDPOINT).netloc


def client() -> Any:
    """Returns a client with the credentials of the environment, or a stranger's, which is enough for public buckets."""
    storage = need("google.cloud.storage", "gcs")
    exceptions = need("google.auth.exceptions", "gcs")
    try:
        return storage.Client()
    except exceptions.DefaultCredentialsError:
        return storage.Client.create_anonymous_client()


@contextmanager
def explain_errors(where: str, host: str = urlsplit(_ENDPOINT).netloc) -> Iterator[None]:
    """Turns Google's errors into ours."""
    api, auth = need("google.api_core.exceptions", "gcs"), need("google.auth.exceptions", "gcs")
    requests = need("requests.exceptions", "gcs")
    try:
        yield
    except api.GoogleAPICallError as error:
        raise from_http_status(error.code or 500, where, error.message) from error
    except auth.TransportError as error:
        raise Interrupted(f"{where}: {host} cannot be reached: {_first_cause(error)}") from error
    except auth.GoogleAuthError as error:
        raise Denied(f"{where}: {error}") from error
    except (api.RetryError, requests.RequestException, OSError) as error:
        raise Interrupted(f"{where}: {host} cannot be reached: {_first_cause(error)}") from error


def _first_cause(error: BaseException) -> str:
    """Returns what the system said, which the libraries wrap three and four times."""
    while inner := getattr(error, "cause", None) or error.__cause__ or error.__context__:
        error = inner
    return message_of(error)
