"""What Kubernetes refuses in its own kinds, in its own words: the checks that people and programs run into."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from isvc.apiserver.builtin.validation import access, autoscaling, devices, pods, services, storage, workloads
from isvc.apiserver.strategy import FieldError
from isvc.kube.objects import Object

Check = Callable[[Object], Iterator[FieldError]]
Change = Callable[[Object, Object], Iterator[FieldError]]

#: By group and kind: what is asked of every object, and what is asked of a change.
CHECKS: dict[tuple[str, str], Check] = {
    ("", "ConfigMap"): storage.config_map,
    ("", "Endpoints"): services.endpoints,
    ("", "Event"): storage.event,
    ("", "PersistentVolume"): storage.volume,
    ("", "PersistentVolumeClaim"): storage.claim,
    ("", "Pod"): pods.pod,
    ("", "Secret"): storage.secret,
    ("", "Service"): services.service,
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): access.webhooks,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): access.webhooks,
    ("apps", "DaemonSet"): workloads.daemon_set,
    ("apps", "Deployment"): workloads.deployment,
    ("apps", "ReplicaSet"): workloads.replica_set,
    ("apps", "StatefulSet"): workloads.stateful_set,
    ("autoscaling", "HorizontalPodAutoscaler"): autoscaling.autoscaler,
    ("batch", "CronJob"): workloads.cron_job,
    ("batch", "Job"): workloads.job,
    ("coordination.k8s.io", "Lease"): storage.lease,
    ("discovery.k8s.io", "EndpointSlice"): services.endpoint_slice,
    ("events.k8s.io", "Event"): storage.event,
    ("networking.k8s.io", "Ingress"): services.ingress,
    ("networking.k8s.io", "NetworkPolicy"): services.network_policy,
    ("policy", "PodDisruptionBudget"): autoscaling.disruption_budget,
    ("rbac.authorization.k8s.io", "ClusterRole"): access.role,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): access.role_binding,
    ("rbac.authorization.k8s.io", "Role"): access.role,
    ("rbac.authorization.k8s.io", "RoleBinding"): access.role_binding,
    ("storage.k8s.io", "StorageClass"): storage.storage_class,
}
STATUS_CHECKS: dict[tuple[str, str], Check] = {("apps", "Deployment"): workloads.deployment_status}
CHANGES: dict[tuple[str, str], Change] = {
    ("", "ConfigMap"): storage.immutable,
    ("", "PersistentVolumeClaim"): storage.claim_update,
    ("", "Pod"): pods.pod_update,
    ("", "Secret"): storage.immutable,
    ("", "Service"): services.service_update,
    ("apps", "DaemonSet"): workloads.selector_unchanged,
    ("apps", "Deployment"): workloads.selector_unchanged,
    ("apps", "ReplicaSet"): workloads.selector_unchanged,
    ("apps", "StatefulSet"): workloads.stateful_set_update,
    ("batch", "Job"): workloads.job_update,
    ("discovery.k8s.io", "EndpointSlice"): services.endpoint_slice_update,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): access.role_binding_update,
    ("rbac.authorization.k8s.io", "RoleBinding"): access.role_binding_update,
    ("resource.k8s.io", "ResourceClaim"): devices.claim_update,
    ("resource.k8s.io", "ResourceClaimTemplate"): devices.claim_update,
}
