"""The Pod Security Standards: what a pod may not do at the level `baseline`, and at `restricted`.

A check returns why it forbids a pod, in short and in detail, or None. Checks have changed over Kubernetes' versions; a
namespace may ask for those of an older one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from isvc.kube.objects import Object, annotations_of, dig

LATEST = 35  # the minor version whose checks these are

_CAPABILITIES = {"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE"}
_CAPABILITIES |= {"SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"}
_SELINUX_TYPES = ("", "container_t", "container_init_t", "container_kvm_t")
_SYSCTLS = {
    "kernel.shm_rmid_forced": 0,
    "net.ipv4.ip_local_port_range": 0,
    "net.ipv4.tcp_syncookies": 0,
    "net.ipv4.ping_group_range": 0,
    "net.ipv4.ip_unprivileged_port_start": 0,
    "net.ipv4.ip_local_reserved_ports": 27,
    "net.ipv4.tcp_keepalive_time": 29,
    "net.ipv4.tcp_fin_timeout": 29,
    "net.ipv4.tcp_keepalive_intvl": 29,
    "net.ipv4.tcp_keepalive_probes": 29,
    "net.ipv4.tcp_rmem": 32,
    "net.ipv4.tcp_wmem": 32,
}
_VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim"}
_VOLUMES |= {"projected", "secret"}
_SECCOMP = ("RuntimeDefault", "Localhost")


class Pod(NamedTuple):
    metadata: Object
    spec: Object
    minor: int = LATEST

    @property
    def containers(self) -> list[Object]:
        fields = ("initContainers", "containers", "ephemeralContainers")
        return [container for field in fields for container in self.spec.get(field) or ()]

    def security(self, *path: str) -> Any:
        return dig(self.spec, "securityContext", *path)

    @property
    def on_windows(self) -> bool:
        return self.minor >= 25 and dig(self.spec, "os", "name") == "windows"

    @property
    def in_user_namespace(self) -> bool:
        return self.minor >= 35 and self.spec.get("hostUsers") is False


class Violation(NamedTuple):
    reason: str
    detail: str

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


Check = Callable[[Pod], Violation | None]


def app_armor(pod: Pod) -> Violation | None:
    allowed = ("RuntimeDefault", "Localhost")
    setters, values = _who(pod, lambda context: _other(dig(context, "appArmorProfile", "type"), allowed))
    notes = [
        f'{key}="{value}"'
        for key, value in sorted(annotations_of({"metadata": pod.metadata}).items())
        if key.startswith("container.apparmor.security.beta.kubernetes.io/")
        and value not in ("", "runtime/default")
        and not value.startswith("localhost/")
    ]
    values += notes
    setters += [_plural("annotation", notes)] if notes else []
    if not setters:
        return None
    detail = f"{' and '.join(setters)} must not set AppArmor profile type to {_quote(values)}"
    return Violation(_plural("forbidden AppArmor profile", values), detail)


def capabilities_baseline(pod: Pod) -> Violation | None:
    bad = {_name(c): set(dig(c, *_ADD) or ()) - _CAPABILITIES for c in pod.containers}
    names, added = [name for name, found in bad.items() if found], sorted(set().union(*bad.values()))
    if not names:
        return None
    detail = f"{_containers(names)} must not include {_quote(added)} in securityContext.capabilities.add"
    return Violation("non-default capabilities", detail)


_ADD = ("securityContext", "capabilities", "add")
_DROP = ("securityContext", "capabilities", "drop")


def host_namespaces(pod: Pod) -> Violation | None:
    used = [f"{field}=true" for field in ("hostNetwork", "hostPID", "hostIPC") if pod.spec.get(field)]
    return Violation("host namespaces", ", ".join(used)) if used else None


def host_path_volumes(pod: Pod) -> Violation | None:
    names = [_name(volume) for volume in pod.spec.get("volumes") or () if "hostPath" in volume]
    return Violation("hostPath volumes", f"{_plural('volume', names)} {_quote(names)}") if names else None


def host_ports(pod: Pod) -> Violation | None:
    used = {_name(c): [p["hostPort"] for p in c.get("ports") or () if p.get("hostPort")] for c in pod.containers}
    names = [name for name, ports in used.items() if ports]
    ports = sorted({str(port) for found in used.values() for port in found})
    if not names:
        return None
    verb = "uses" if len(names) == 1 else "use"
    return Violation("hostPort", f"{_containers(names)} {verb} {_plural('hostPort', ports)} {', '.join(ports)}")


def probe_hosts(pod: Pod) -> Violation | None:
    if pod.minor < 34:
        return None
    used = {_name(container): set(_hosts(container)) for container in pod.containers}
    names, hosts = sorted(name for name, found in used.items() if found), sorted(set().union(*used.values()))
    if not names:
        return None
    verb, what = "uses" if len(names) == 1 else "use", "probe or lifecycle host"
    return Violation(what, f"{_containers(names)} {verb} {_plural(what, hosts)} {_quote(hosts)}")


def _hosts(container: Object) -> Iterator[str]:
    handlers = [container.get(field) for field in ("livenessProbe", "readinessProbe", "startupProbe")]
    handlers += [dig(container, "lifecycle", field) for field in ("postStart", "preStop")]
    for handler in handlers:
        for action in ("httpGet", "tcpSocket"):
            if host := dig(handler, action, "host"):
                yield host


def privileged(pod: Pod) -> Violation | None:
    names = [_name(c) for c in pod.containers if dig(c, "securityContext", "privileged")]
    detail = f"{_containers(names)} must not set securityContext.privileged=true"
    return Violation("privileged", detail) if names else None


def proc_mount(pod: Pod) -> Violation | None:
    return None if pod.in_user_namespace else proc_mount_restricted(pod)


def proc_mount_restricted(pod: Pod) -> Violation | None:
    used = {_name(c): dig(c, "securityContext", "procMount") for c in pod.containers}
    names = [name for name, found in used.items() if found not in (None, "Default")]
    values = sorted({used[name] for name in names})
    detail = f"{_containers(names)} must not set securityContext.procMount to {_quote(values)}"
    return Violation("procMount", detail) if names else None


def selinux(pod: Pod) -> Violation | None:
    allowed = (*_SELINUX_TYPES, "container_engine_t") if pod.minor >= 31 else _SELINUX_TYPES
    user = role = False
    types: set[str] = set()

    def bad(context: Object) -> str | None:
        nonlocal user, role
        options = context.get("seLinuxOptions") or {}
        wrong = _other(options.get("type"), allowed)
        types.update([wrong] if wrong else [])
        user, role = user or bool(options.get("user")), role or bool(options.get("role"))
        return "set" if wrong or options.get("user") or options.get("role") else None

    setters, _ = _who(pod, bad)
    if not setters:
        return None
    found = [f"{_plural('type', types)} {_quote(sorted(types))}"] if types else []
    found += ["user may not be set"] if user else []
    found += ["role may not be set"] if role else []
    detail = f"{' and '.join(setters)} set forbidden securityContext.seLinuxOptions: {'; '.join(found)}"
    return Violation("seLinuxOptions", detail)


def seccomp_baseline(pod: Pod) -> Violation | None:
    if pod.minor < 19:  # which knew annotations only, and those mean nothing any more
        return None
    setters, values = _who(pod, lambda context: _other(dig(context, "seccompProfile", "type"), _SECCOMP))
    detail = f"{' and '.join(setters)} must not set securityContext.seccompProfile.type to {_quote(values)}"
    return Violation("seccompProfile", detail) if setters else None


def sysctls(pod: Pod) -> Violation | None:
    used = [each.get("name", "") for each in pod.security("sysctls") or ()]
    bad = [name for name in used if _SYSCTLS.get(name, LATEST + 1) > pod.minor]
    return Violation("forbidden sysctls", ", ".join(bad)) if bad else None


def windows_host_process(pod: Pod) -> Violation | None:
    setters, _ = _who(pod, lambda context: "true" if dig(context, "windowsOptions", "hostProcess") else None)
    detail = f"{' and '.join(setters)} must not set securityContext.windowsOptions.hostProcess=true"
    return Violation("hostProcess", detail) if setters else None


def privilege_escalation(pod: Pod) -> Violation | None:
    names = [_name(c) for c in pod.containers if dig(c, "securityContext", "allowPrivilegeEscalation") is not False]
    if pod.on_windows or not names:
        return None
    detail = f"{_containers(names)} must set securityContext.allowPrivilegeEscalation=false"
    return Violation("allowPrivilegeEscalation != false", detail)


def capabilities_restricted(pod: Pod) -> Violation | None:
    if pod.minor < 22:
        return capabilities_baseline(pod)
    if pod.on_windows:
        return None
    keeping = [_name(c) for c in pod.containers if "ALL" not in (dig(c, *_DROP) or ())]
    bad = {_name(c): set(dig(c, *_ADD) or ()) - {"NET_BIND_SERVICE"} for c in pod.containers}
    adding, added = [name for name, found in bad.items() if found], sorted(set().union(*bad.values()))
    details = []
    if keeping:
        details.append(f'{_containers(keeping)} must set securityContext.capabilities.drop=["ALL"]')
    if adding:
        details.append(f"{_containers(adding)} must not include {_quote(added)} in securityContext.capabilities.add")
    return Violation("unrestricted capabilities", "; ".join(details)) if details else None


def restricted_volumes(pod: Pod) -> Violation | None:
    bad = [each for each in pod.spec.get("volumes") or () if not _VOLUMES & each.keys()]
    names = [_name(volume) for volume in bad]
    kinds = sorted({next((key for key in volume if key != "name"), "unknown") for volume in bad})
    if not bad:
        return None
    verb, what = "uses" if len(names) == 1 else "use", _plural("restricted volume type", kinds)
    return Violation(
        "restricted volume types", f"{_plural('volume', names)} {_quote(names)} {verb} {what} {_quote(kinds)}"
    )


def run_as_non_root(pod: Pod) -> Violation | None:
    if pod.in_user_namespace:
        return None
    setters, _ = _who(pod, lambda context: "false" if context.get("runAsNonRoot") is False else None)
    reason = "runAsNonRoot != true"
    if setters:
        return Violation(reason, f"{' and '.join(setters)} must not set securityContext.runAsNonRoot=false")
    silent = [_name(c) for c in pod.containers if dig(c, "securityContext", "runAsNonRoot") is None]
    if not silent or pod.security("runAsNonRoot"):
        return None
    return Violation(reason, f"pod or {_containers(silent)} must set securityContext.runAsNonRoot=true")


def run_as_user(pod: Pod) -> Violation | None:
    if pod.in_user_namespace or pod.minor < 23:
        return None
    setters, _ = _who(pod, lambda context: "0" if context.get("runAsUser") == 0 else None)
    return Violation("runAsUser=0", f"{' and '.join(setters)} must not set runAsUser=0") if setters else None


def seccomp_restricted(pod: Pod) -> Violation | None:
    if pod.on_windows or pod.minor < 19:
        return None
    silent = [_name(c) for c in pod.containers if dig(c, "securityContext", "seccompProfile") is None]
    worse = seccomp_baseline(pod)
    if worse or not silent or pod.security("seccompProfile"):
        return worse
    must = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return Violation("seccompProfile", f"pod or {_containers(silent)} {must}")


BASELINE: tuple[Check, ...] = (
    app_armor,
    capabilities_baseline,
    host_namespaces,
    host_path_volumes,
    host_ports,
    probe_hosts,
    privileged,
    proc_mount,
    selinux,
    seccomp_baseline,
    sysctls,
    windows_host_process,
)
_STRICTER = (capabilities_baseline, host_path_volumes, proc_mount, seccomp_baseline)
"""Of which `restricted` has a check of its own in their place."""
RESTRICTED: tuple[Check, ...] = (
    *(each for each in BASELINE if each not in _STRICTER),
    privilege_escalation,
    capabilities_restricted,
    proc_mount_restricted,
    restricted_volumes,
    run_as_non_root,
    run_as_user,
    seccomp_restricted,
)


def _who(pod: Pod, bad: Callable[[Object], str | None]) -> tuple[list[str], list[str]]:
    """Returns who has a security context with something bad in it, the pod or its containers; and what that is."""
    own = bad(pod.security() or {})
    found = {_name(container): bad(container.get("securityContext") or {}) for container in pod.containers}
    names = [name for name, value in found.items() if value]
    setters = (["pod"] if own else []) + ([_containers(names)] if names else [])
    return setters, sorted({value for value in (own, *found.values()) if value})


def _other(value: str | None, allowed: tuple[str, ...]) -> str | None:
    return value if value is not None and value not in allowed else None


def _name(each: Object) -> str:
    return str(each.get("name", ""))


def _containers(names: list[str]) -> str:
    return f"{_plural('container', names)} {_quote(names)}"


def _plural(word: str, things: Any) -> str:
    return word if len(things) == 1 else f"{word}s"


def _quote(items: list[str]) -> str:
    return ", ".join(f'"{item}"' for item in items)
