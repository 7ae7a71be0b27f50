"""Why a cluster cannot be used, in one line each; programs print it and exit.

ClusterError
├── ConfigError   the kubeconfig, the context or a credential plugin is wrong
├── Unreachable   no answer: connection, TLS or deadline
└── NotLeader     a write was held back because the lease has passed

What a reachable server answers is another tree: isvc.kube.errors.
"""

from __future__ import annotations


class ClusterError(Exception):
    """`str()` is one line, fit for a terminal."""


class ConfigError(ClusterError):
    pass


class Unreachable(ClusterError):
    pass


class NotLeader(ClusterError):
    pass
