"""The credentials that a pod has through its service account."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from isvc.kube.objects import Object, annotations_of, name_of
from isvc.serving.config.sections import CredentialsConfig
from isvc.serving.containers import add_volume, ensure_list, merge_env
from isvc.serving.credentials import s3
from isvc.serving.credentials.lookup import Lookup
from isvc.serving.credentials.secrets import grant_of
from isvc.serving.refused import MissingSecret

AWS_ROLE: Final = "eks.amazonaws.com/role-arn"


def add_service_account_credentials(
    container: Object,
    pod_spec: Object,
    account_name: str,
    annotations: Mapping[str, str],
    config: CredentialsConfig,
    lookup: Lookup,
) -> None:
    """Gives a container what the service account's secrets, or the one secret that the pod names, allow.

    A service account that does not exist gives nothing: its pods cannot be created, and events say why. A secret that
    does not exist refuses.
    """
    account = lookup.service_account(account_name or "default")
    if account is None:
        return
    if AWS_ROLE in annotations_of(account):
        ensure_list(container, "env").extend(s3.from_service_account(account, config.s3))
    names, named_by = _secrets(account, annotations, config)
    lookup.expect_secrets(names)
    for name in names:
        secret = lookup.secret(name)
        if secret is None:
            where = f'does not exist in namespace "{lookup.namespace}"'
            raise MissingSecret(name, f'secret "{name}", which {named_by} names, {where}')
        _add(container, pod_spec, secret, config)


def _secrets(account: Object, annotations: Mapping[str, str], config: CredentialsConfig) -> tuple[list[str], str]:
    annotation = config.storage_secret_name_annotation
    if annotation and annotation in annotations:
        return [annotations[annotation]], f"annotation {annotation}"
    names = [str(reference.get("name", "")) for reference in account.get("secrets") or ()]
    return names, f'service account "{name_of(account)}"'


def _add(container: Object, pod_spec: Object, secret: Object, config: CredentialsConfig) -> None:
    grant = grant_of(secret, config)
    for volume in grant.volumes:
        add_volume(pod_spec, volume)
    if grant.mounts:
        ensure_list(container, "volumeMounts").extend(grant.mounts)
    if grant.merge:
        merge_env(container, grant.env)
    elif grant.env:
        ensure_list(container, "env").extend(grant.env)
