"""What Kubernetes fills in where a built-in object is silent, so that it reads back as from a real cluster.

Defaults work on objects that have their shape already: structs that are always shown are there, empty values are not.
"""

from __future__ import annotations

from collections.abc import Callable

from isvc.kube.builtin.defaults import access, pods, services, storage, workloads
from isvc.kube.objects import Object

Default = Callable[[Object], None]

#: By group and kind.
DEFAULTS: dict[tuple[str, str], Default] = {
    ("", "ConfigMap"): storage.config_map,
    ("", "Endpoints"): services.endpoints,
    ("", "LimitRange"): storage.limit_range,
    ("", "Namespace"): access.namespace,
    ("", "Node"): pods.node,
    ("", "PersistentVolume"): storage.volume,
    ("", "PersistentVolumeClaim"): storage.claim,
    ("", "Pod"): pods.pod,
    ("", "PodTemplate"): lambda obj: pods.template(obj["template"]),
    ("", "ReplicationController"): workloads.replication_controller,
    ("", "Secret"): storage.secret,
    ("", "Service"): services.service,
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): access.webhooks,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): access.webhooks,
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): access.admission_policy,
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"): access.admission_policy_binding,
    ("apiregistration.k8s.io", "APIService"): access.api_service,
    ("apps", "DaemonSet"): workloads.daemon_set,
    ("apps", "Deployment"): workloads.deployment,
    ("apps", "ReplicaSet"): workloads.replica_set,
    ("apps", "StatefulSet"): workloads.stateful_set,
    ("autoscaling", "HorizontalPodAutoscaler"): workloads.autoscaler,
    ("batch", "CronJob"): workloads.cron_job,
    ("batch", "Job"): workloads.job,
    ("discovery.k8s.io", "EndpointSlice"): services.endpoint_slice,
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): access.flow_schema,
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): access.priority_level,
    ("networking.k8s.io", "IngressClass"): services.ingress_class,
    ("networking.k8s.io", "NetworkPolicy"): services.network_policy,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): access.role_binding,
    ("rbac.authorization.k8s.io", "RoleBinding"): access.role_binding,
    ("resource.k8s.io", "ResourceClaim"): storage.resource_claim,
    ("resource.k8s.io", "ResourceClaimTemplate"): storage.resource_claim_template,
    ("scheduling.k8s.io", "PriorityClass"): access.priority_class,
    ("storage.k8s.io", "CSIDriver"): storage.driver,
    ("storage.k8s.io", "StorageClass"): storage.storage_class,
}
