"""Parts of the pods in presets."""

from __future__ import annotations

from typing import Any, Final

from isvc.kube.objects import Object

SCHEME: Final = "{{ if .GlobalConfig.EnableTLS }}HTTPS{{ else }}HTTP{{ end }}"
CERTIFICATES: Final = "/var/run/kserve/tls"
TRUSTED: Final = f"{CERTIFICATES}:/var/run/secrets/kubernetes.io/serviceaccount:/etc/pki/tls/certs"
GRACE_SECONDS: Final = 60
DRAIN_SECONDS: Final = 15
CERTIFICATE_VOLUME: Final = {
    "name": "tls-certs",
    "secret": {"secretName": "{{ ChildName .ObjectMeta.Name `-kserve-self-signed-certs` }}"},
}
CERTIFICATE_MOUNT: Final = {"name": "tls-certs", "mountPath": CERTIFICATES, "readOnly": True}


def with_tls(flag: str, otherwise: str = "") -> str:
    """The flag where model servers speak TLS."""
    other = f"{{{{ else }}}}{otherwise}" if otherwise else ""
    return f"{{{{ if .GlobalConfig.EnableTLS }}}}{flag}{other}{{{{ end }}}}"


def health(port: int | str, path: str = "/health", *, scheme: bool = True, **timing: int) -> Object:
    target: Object = {"path": path, "port": port}
    return {"httpGet": target | ({"scheme": SCHEME} if scheme else {}), **timing}


def container(name: str, image: str, *, writable: bool = False, added: tuple[str, ...] = (), **fields: Any) -> Object:
    """A container with no more rights than it needs. A device's runtime hook may need a writable root."""
    capabilities: Object = {"drop": ["ALL"]} | ({"add": list(added)} if added else {})
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": not writable,
            "runAsNonRoot": True,
            "capabilities": capabilities,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        **fields,
    }


def drained() -> Object:
    """Before a pod goes, it waits for gateways to notice."""
    return {"preStop": {"exec": {"command": ["/bin/sleep", str(DRAIN_SECONDS)]}}}


def variables(**values: str) -> list[Object]:
    return [{"name": name, "value": value} for name, value in values.items()]


def scratch(name: str, **empty_dir: str) -> Object:
    return {"name": name, "emptyDir": empty_dir}
