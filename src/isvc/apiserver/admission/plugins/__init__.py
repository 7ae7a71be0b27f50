"""The admission plugins that a default Kubernetes cluster has, in the order in which it asks them."""

from __future__ import annotations

from collections.abc import Sequence

from isvc.apiserver.admission.plugins.default_classes import DefaultIngressClass, DefaultStorageClass
from isvc.apiserver.admission.plugins.limit_ranger import LimitRanger
from isvc.apiserver.admission.plugins.namespaces import NamespaceLifecycle
from isvc.apiserver.admission.plugins.plugin import Plugin
from isvc.apiserver.admission.plugins.pod_security import PodSecurity
from isvc.apiserver.admission.plugins.priority import Priority
from isvc.apiserver.admission.plugins.runtime_class import RuntimeClass
from isvc.apiserver.admission.plugins.service_account import ServiceAccount
from isvc.apiserver.admission.plugins.tolerations import DefaultTolerationSeconds
from isvc.apiserver.reader import Reader

__all__ = ["ORDER", "Plugin", "chosen"]

#: It needs an account and a ConfigMap in every namespace, which nothing in a bare API server makes.
NEED_CONTROLLERS = ("ServiceAccount",)

ORDER: tuple[type[Plugin], ...] = (
    NamespaceLifecycle,
    LimitRanger,
    ServiceAccount,
    PodSecurity,
    Priority,
    DefaultTolerationSeconds,
    DefaultStorageClass,
    RuntimeClass,
    DefaultIngressClass,
)


def enabled_plugins(reader: Reader, without: Sequence[str] | None = None, *, controllers: bool = False) -> list[Plugin]:
    """Returns all plugins but those named; unless said, all that work with or without controllers."""
    if without is None:
        without = () if controllers else NEED_CONTROLLERS
    return [each(reader, controllers) for each in ORDER if each.__name__ not in without]
