"""Credentials for `storage:` with a key: a JSON entry of the storage-config secret, and parameters that override it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import orjson

from isvc.kube import gojson
from isvc.kube.objects import Object
from isvc.serving.config.sections import CredentialsConfig
from isvc.serving.containers import ensure_list, secret_variable, variable
from isvc.serving.credentials.lookup import Lookup, secret_value
from isvc.serving.credentials.s3 import CA_BUNDLE_CONFIG_MAP
from isvc.serving.refused import Refused
from isvc.storage_schemes import SCHEMES

DEFAULT_SECRET: Final = "storage-config"  # noqa: S105
DEFAULT_ENTRY: Final = "default"
SCHEME_PLACEHOLDER: Final = "<scheme-placeholder>://"
TYPES: Final = tuple(name for scheme in SCHEMES if scheme.storage for name in scheme.names)


def add_storage_spec_credentials(
    container: Object,
    key: str,
    parameters: Mapping[str, str],
    annotations: Mapping[str, str],
    config: CredentialsConfig,
    lookup: Lookup,
) -> None:
    """Points the container at the entry, and completes the URIs in its arguments, whose scheme only the entry tells."""
    secret_name = _secret_name(annotations, config)
    kind, bucket = parameters.get("type", ""), parameters.get("bucket", "")
    key, stored = _entry(secret_name, key, kind, lookup)
    env = ensure_list(container, "env")
    if stored is not None:
        if not kind:
            settings = _settings(stored, key, secret_name)
            kind, bucket = settings.get("type", ""), bucket or settings.get("bucket", "")
            if "type" in settings and kind not in TYPES:
                raise Refused(
                    f'secret "{secret_name}", key {key}: storage type must be one of {", ".join(TYPES)}, not "{kind}"'
                )
            if "cabundle_configmap" in settings:
                env.append(variable(CA_BUNDLE_CONFIG_MAP, settings["cabundle_configmap"]))
        env.append(secret_variable("STORAGE_CONFIG", secret_name, key))
    if not kind:
        raise Refused(f'cannot tell the storage type: neither parameters nor key {key} of "{secret_name}" give it')
    container["args"] = _complete(container.get("args") or [], kind, bucket)
    if parameters:
        env.append(variable("STORAGE_OVERRIDE_CONFIG", gojson.dumps(gojson.sorted_map(parameters))))


def add_storage_entry(
    container: Object, key: str, annotations: Mapping[str, str], config: CredentialsConfig, lookup: Lookup
) -> None:
    """Points the container at the entry of that key, if there is one."""
    name = _secret_name(annotations, config)
    secret = lookup.secret(name)
    if secret is not None and secret_value(secret, key) is not None:
        ensure_list(container, "env").append(secret_variable("STORAGE_CONFIG", name, key))


def _secret_name(annotations: Mapping[str, str], config: CredentialsConfig) -> str:
    configured = config.storage_spec_secret_name or DEFAULT_SECRET
    return annotations.get(config.storage_secret_name_annotation) or configured


def _entry(secret_name: str, key: str, kind: str, lookup: Lookup) -> tuple[str, str | None]:
    """Returns the key that applies and what is stored under it. Only a key that was asked for has to exist."""
    secret = lookup.secret(secret_name)
    if not key:
        key = f"{DEFAULT_ENTRY}_{kind}" if kind else DEFAULT_ENTRY
        return key, secret_value(secret, key) if secret else None
    if secret is None:
        raise Refused(f'storage secret "{secret_name}" does not exist in namespace "{lookup.namespace}"')
    stored = secret_value(secret, key)
    if stored is None:
        raise Refused(f'storage key "{key}" is not in storage secret "{secret_name}"')
    return key, stored


def _settings(stored: str, key: str, secret_name: str) -> dict[str, str]:
    try:
        settings = orjson.loads(stored)
    except orjson.JSONDecodeError:
        settings = None
    if not isinstance(settings, dict) or not all(isinstance(value, str) for value in settings.values()):
        raise Refused(f'secret "{secret_name}", key {key}: not a JSON map of strings')
    return settings


def _complete(arguments: list[str], kind: str, bucket: str) -> list[str]:
    """Replaces the placeholder scheme of each URI that has one; arguments are pairs of URI and path."""
    if not arguments or not arguments[0].startswith(SCHEME_PLACEHOLDER):
        return arguments
    if kind == "s3" and not bucket:
        raise Refused("storage type s3 needs a bucket, in the storage secret or in the parameters")
    prefix = f"s3://{bucket}/" if kind == "s3" else f"{kind}://"
    return [
        prefix + argument.removeprefix(SCHEME_PLACEHOLDER) if argument.startswith(SCHEME_PLACEHOLDER) else argument
        for argument in arguments
    ]
