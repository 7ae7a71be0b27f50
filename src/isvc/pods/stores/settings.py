"""The settings of the environment, read once.

Variables have the names that KServe's pods carry. `STORAGE_CONFIG`, an entry of the storage-config secret, and
`STORAGE_OVERRIDE_CONFIG` are laid over them.
"""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from isvc.pods.stores.errors import StorageError

S3_VARIABLES: Final = {
    "endpoint_url": "AWS_ENDPOINT_URL",
    "access_key_id": "AWS_ACCESS_KEY_ID",
    "secret_access_key": "AWS_SECRET_ACCESS_KEY",
    "region": "AWS_DEFAULT_REGION",
    "ca_bundle": "AWS_CA_BUNDLE",
    "verify_ssl": "S3_VERIFY_SSL",
    "anonymous": "awsAnonymousCredential",
}
CA_FILE: Final = "cabundle.crt"
CA_FOLDER: Final = "/etc/ssl/custom-certs"


@dataclass(frozen=True, slots=True)
class Settings:
    variables: Mapping[str, str]
    storage: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Settings:
        storage = _json(environment, "STORAGE_CONFIG") | _json(environment, "STORAGE_OVERRIDE_CONFIG")
        variables = dict(environment)
        if storage.get("type") == "s3":
            variables |= {name: storage[key] for key, name in S3_VARIABLES.items() if key in storage}
        return cls(variables, storage)

    def get(self, name: str, default: str = "") -> str:
        return self.variables.get(name) or default

    def number(self, name: str, default: int) -> int:
        try:
            return int(self.get(name, str(default)))
        except ValueError:
            raise StorageError(f"variable {name} is not a number") from None

    def flag(self, name: str, default: bool = False) -> bool:
        value = self.get(name).lower()
        return value not in ("0", "false") if value else default

    def wants(self, path: str) -> bool:
        """Returns whether a file is to be downloaded, by `STORAGE_ALLOW_PATTERNS` and `STORAGE_IGNORE_PATTERNS`."""
        allowed, ignored = self.patterns("STORAGE_ALLOW_PATTERNS"), self.patterns("STORAGE_IGNORE_PATTERNS")
        if allowed and not any(fnmatch.fnmatch(path, pattern) for pattern in allowed):
            return False
        return not any(fnmatch.fnmatch(path, pattern) for pattern in ignored)

    def patterns(self, name: str) -> list[str]:
        """Returns a JSON list, or words between commas."""
        value = self.get(name).strip()
        try:
            parsed = json.loads(value)
        except ValueError:
            parsed = value.split(",")
        listed = parsed if isinstance(parsed, list) else [parsed]
        return [text for item in listed if (text := str(item).strip())]

    @property
    def ca_bundle(self) -> Path | None:
        """Returns the extra CA certificates that the pod's administrator mounted, if any."""
        if not self.get("CA_BUNDLE_CONFIGMAP_NAME"):
            return None
        return Path(self.get("CA_BUNDLE_VOLUME_MOUNT_POINT", CA_FOLDER)) / CA_FILE


def _json(environment: Mapping[str, str], name: str) -> dict[str, str]:
    try:
        value: Any = json.loads(environment.get(name) or "{}")
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise StorageError(f"variable {name} is not a JSON map")
    return {str(key): str(item) for key, item in value.items()}
