"""ServiceAccount: the account that a pod runs as, and a volume with its token in every container."""

from __future__ import annotations

from collections.abc import Iterator

from isvc.apiserver.admission.plugins.plugin import Plugin, forbidden
from isvc.apiserver.objects.metadata import generate_name
from isvc.apiserver.request import AdmissionRequest
from isvc.kube.objects import Object, annotations_of, containers_of

_DEFAULT = "default"
_MIRROR = "kubernetes.io/config.mirror"
_ONLY_OWN_SECRETS = "kubernetes.io/enforce-mountable-secrets"
_VOLUME = "kube-api-access-"
_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
_TOKEN_SECONDS = 3607


class ServiceAccount(Plugin):
    resources = ("pods",)

    def admit(self, request: AdmissionRequest, obj: Object, old: Object | None) -> None:
        if request.operation != "CREATE" or request.subresource or _MIRROR in annotations_of(obj):
            return
        spec = obj["spec"]
        if not spec.get("serviceAccountName"):
            spec["serviceAccountName"] = spec["serviceAccount"] = _DEFAULT
        account = self._account(request, obj)
        if spec.get("automountServiceAccountToken", account.get("automountServiceAccountToken", True)):
            _mount_token(spec)
        if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
            spec["imagePullSecrets"] = [{"name": each.get("name", "")} for each in account["imagePullSecrets"]]

    def validate(self, request: AdmissionRequest, obj: Object | None, old: Object | None) -> None:
        if obj is None or request.operation != "CREATE" or request.subresource:
            return
        if _MIRROR in annotations_of(obj):
            if obj["spec"].get("serviceAccountName"):
                raise forbidden(request, obj, "a mirror pod may not reference service accounts")
            return
        account = self._account(request, obj)
        if annotations_of(account).get(_ONLY_OWN_SECRETS) == "true":
            for why in _foreign_secrets(account, obj["spec"]):
                raise forbidden(request, obj, why)

    def _account(self, request: AdmissionRequest, pod: Object) -> Object:
        name = pod["spec"].get("serviceAccountName") or ""
        account = self.reader.get("serviceaccounts", name, request.namespace)
        if account is None and self.controllers and name == _DEFAULT:
            return {}  # which is about to be made
        if account is None:
            why = f'error looking up service account {request.namespace}/{name}: serviceaccount "{name}" not found'
            raise forbidden(request, pod, why)
        return account


def _mount_token(spec: Object) -> None:
    volumes = spec.get("volumes") or []
    present = next((each["name"] for each in volumes if each.get("name", "").startswith(_VOLUME)), None)
    name = present or generate_name(_VOLUME)
    needed = False
    for container in containers_of(spec):
        mounts = container.get("volumeMounts") or []
        if not any(each.get("mountPath") == _PATH for each in mounts):
            container["volumeMounts"] = [*mounts, {"name": name, "readOnly": True, "mountPath": _PATH}]
            needed = True
    if needed and not present:
        spec["volumes"] = [*volumes, {"name": name, "projected": _token_source()}]


def _token_source() -> Object:
    own_namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    authority = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    return {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": _TOKEN_SECONDS, "path": "token"}},
            {"configMap": authority},
            {"downwardAPI": {"items": [own_namespace]}},
        ],
        "defaultMode": 0o644,
    }


def _foreign_secrets(account: Object, spec: Object) -> Iterator[str]:
    """Yields complaints about secrets that the pod uses and its account does not list."""
    own = {each.get("name") for each in account.get("secrets") or ()}
    by = f"is not allowed because service account {account['metadata']['name']} does not reference that"
    for volume in spec.get("volumes") or ():
        secret = volume.get("secret")
        if secret and secret.get("secretName") not in own:
            yield f'volume with secret.secretName="{secret.get("secretName", "")}" {by} secret'
    for container in containers_of(spec):
        title = f"{'init ' if container in (spec.get('initContainers') or ()) else ''}container {container['name']}"
        for env in container.get("env") or ():
            reference = (env.get("valueFrom") or {}).get("secretKeyRef")
            if reference and reference.get("name") not in own:
                named = f'referencing secret.secretName="{reference["name"]}"'
                yield f"{title} with envVar {env['name']} {named} {by} secret"
        for source in container.get("envFrom") or ():
            reference = source.get("secretRef")
            if reference and reference.get("name") not in own:
                yield f'{title} with envFrom referencing secret.secretName="{reference["name"]}" {by} secret'
    pulling = {each.get("name") for each in account.get("imagePullSecrets") or ()}
    for index, each in enumerate(spec.get("imagePullSecrets") or ()):
        if each.get("name") not in pulling:
            yield f'imagePullSecrets[{index}].name="{each.get("name", "")}" {by} imagePullSecret'
