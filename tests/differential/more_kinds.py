"""Further built-in kinds for random sequences, each with a handful of values.

Not among them: Jobs and PersistentVolumeClaims, of which a real server stores the first patch that changes nothing (its
defaults differ before and after storage), so that watchers see a change that is none.
"""

from __future__ import annotations

from hypothesis import strategies as st

from tests.differential.kind import Json, Kind, listed, metadata, some, with_metadata

_TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "main", "image": "b"}]}}
_CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}

_stateful_set = with_metadata(
    st.fixed_dictionaries(
        {"selector": st.just({"matchLabels": {"app": "a"}}), "template": st.just(_TEMPLATE)},
        optional={
            "replicas": st.sampled_from([0, 2]),
            "serviceName": st.sampled_from(["s", "t"]),
            "podManagementPolicy": st.sampled_from(["Parallel", "Wrong"]),
            "updateStrategy": st.sampled_from([{"type": "OnDelete"}, {"rollingUpdate": {"partition": 1}}]),
            "volumeClaimTemplates": st.sampled_from([[_CLAIM]]),
        },
    )
)
_lease = with_metadata(
    some(
        {
            "holderIdentity": st.sampled_from(["a", "b"]),
            "leaseDurationSeconds": st.sampled_from([15, 0]),
            "renewTime": st.sampled_from(["2024-01-01T00:00:00.000000Z", "2024-01-01T00:00:01.500000Z"]),
            "leaseTransitions": st.integers(0, 2),
        }
    )
)
_budget = with_metadata(
    some(
        {
            "minAvailable": st.sampled_from([1, "50%", "x"]),
            "maxUnavailable": st.sampled_from([1, "50%"]),
            "selector": st.sampled_from([{"matchLabels": {"app": "a"}}, {"matchLabels": {"app": "b"}}]),
        }
    )
)
_binding = some(
    {
        "metadata": metadata,
        "roleRef": st.sampled_from([{"kind": "Role", "name": "r"}, {"kind": "Role", "name": "q"}, {"kind": "Wrong"}]),
        "subjects": listed(
            [{"kind": "ServiceAccount", "name": "s", "namespace": "n"}, {"kind": "User", "name": "u"}], least=1
        ),
    }
)
_account = some(
    {
        "metadata": metadata,
        "imagePullSecrets": listed([{"name": "p"}, {"name": "q"}], least=1),
        "automountServiceAccountToken": st.booleans(),
    }
)
MORE_KINDS = [
    Kind("/apis/apps/v1", "statefulsets", "StatefulSet", _stateful_set),
    Kind("/apis/coordination.k8s.io/v1", "leases", "Lease", _lease),
    Kind("/apis/policy/v1", "poddisruptionbudgets", "PodDisruptionBudget", _budget),
    Kind("/apis/rbac.authorization.k8s.io/v1", "rolebindings", "RoleBinding", _binding),
    Kind("/api/v1", "serviceaccounts", "ServiceAccount", _account),
]
MORE_EXAMPLES: dict[str, Json] = {
    "statefulsets": {"spec": {"selector": {"matchLabels": {"app": "a"}}, "template": _TEMPLATE}},
    "leases": {},
    "poddisruptionbudgets": {"spec": {"maxUnavailable": 1}},
    "rolebindings": {"roleRef": {"kind": "Role", "name": "r"}},
    "serviceaccounts": {},
}
