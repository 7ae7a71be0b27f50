"""What a secret gives a download, recognised by the keys it holds.

The first kind that recognises a secret wins; one that no kind recognises (an image pull secret, a token) gives nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from isvc.kube.objects import Object, name_of
from isvc.serving.config.sections import CredentialsConfig
from isvc.serving.containers import mount, secret_variable, variable
from isvc.serving.credentials import s3
from isvc.serving.credentials.lookup import secret_value
from isvc.storage_schemes import SCHEMES

GOOGLE_KEY_FILE: Final = "gcloud-application-credentials.json"
GOOGLE_FOLDER: Final = "/var/secrets/"
HDFS_FOLDER: Final = "/var/secrets/kserve-hdfscreds"

AZURE_ACCESS_KEY: Final = "AZURE_STORAGE_ACCESS_KEY"
AZURE_LEGACY: Final = {
    "AZURE_SUBSCRIPTION_ID": "AZ_SUBSCRIPTION_ID",
    "AZURE_TENANT_ID": "AZ_TENANT_ID",
    "AZURE_CLIENT_ID": "AZ_CLIENT_ID",
    "AZURE_CLIENT_SECRET": "AZ_CLIENT_SECRET",
}
AZURE_VARIABLES: Final = (
    *AZURE_LEGACY,
    AZURE_ACCESS_KEY,
    "AZURE_ACCESS_TOKEN",
    "AZURE_ACCESS_EXPIRES_ON_SECONDS",
    "AZURE_ACCOUNT_NAME",
    "AZURE_SERVICE_URL",
)
TOKENS: Final = tuple(scheme.token for scheme in SCHEMES if scheme.token)


@dataclass(frozen=True, slots=True)
class Grant:
    """What to add to a container and its pod. `merge` says that variables replace those of the same name."""

    env: list[Object] = field(default_factory=list)
    mounts: list[Object] = field(default_factory=list)
    volumes: list[Object] = field(default_factory=list)
    merge: bool = False


def grant_of(secret: Object, config: CredentialsConfig) -> Grant:
    keys = (secret.get("data") or {}).keys()
    google_key = config.gcs.gcs_credential_file_name or GOOGLE_KEY_FILE
    if s3.secret_access_key_name(config.s3) in keys:
        # Settings of a secret take over those that an IAM role's annotations gave.
        return Grant(env=s3.from_secret(secret, config.s3), merge=True)
    if google_key in keys:
        return _google(secret, google_key)
    if keys & {"AZ_CLIENT_ID", "AZURE_CLIENT_ID", "AZURE_ACCESS_TOKEN"}:
        return Grant(env=_azure(secret))
    if AZURE_ACCESS_KEY in keys:
        return Grant(env=[secret_variable(AZURE_ACCESS_KEY, name_of(secret), AZURE_ACCESS_KEY)])
    if "https-host" in keys:
        return Grant(env=_http_headers(secret))
    if "HDFS_NAMENODE" in keys:
        return _mount_secret(secret, "hdfs-secrets", HDFS_FOLDER)
    if "GIT_PASSWORD" in keys:
        known = [key for key in ("GIT_USERNAME", "GIT_PASSWORD") if key in keys]
        return Grant(env=[secret_variable(key, name_of(secret), key) for key in known])
    for token in TOKENS:
        if token in keys:
            return Grant(env=[secret_variable(token, name_of(secret), token)])
    return Grant()


def _google(secret: Object, key: str) -> Grant:
    grant = _mount_secret(secret, "user-gcp-sa", GOOGLE_FOLDER)
    grant.env.append(variable("GOOGLE_APPLICATION_CREDENTIALS", GOOGLE_FOLDER + key))
    return grant


def _mount_secret(secret: Object, volume: str, path: str) -> Grant:
    return Grant(
        mounts=[mount(volume, path, read_only=True)],
        volumes=[{"name": volume, "secret": {"secretName": name_of(secret)}}],
    )


def _azure(secret: Object) -> list[Object]:
    """Returns every known variable that the secret holds, under its older name too; the tenant in any case."""
    data = secret.get("data") or {}
    env = []
    for name in AZURE_VARIABLES:
        legacy = AZURE_LEGACY.get(name, "")
        key = legacy if legacy in data else name
        if key in data or name == "AZURE_TENANT_ID":
            env.append(secret_variable(name, name_of(secret), key))
    return env


def _http_headers(secret: Object) -> list[Object]:
    host, headers = secret_value(secret, "https-host"), secret_value(secret, "headers")
    return [] if headers is None else [variable(f"{host}-headers", headers)]
