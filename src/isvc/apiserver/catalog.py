"""The built-in resources, one line each: how they are named, which verbs and subresources they have.

What their objects look like is not said here: that is a matter of schemas and of the strategies in `builtin/`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from isvc.apiserver.description import ALL_VERBS, Description, Scale
from isvc.apiserver.strategy import Strategy
from isvc.kube.resource import Resource

_READ_WRITE = ("get", "patch", "update")
_CREATE = ("create",)

# plural, kind, short names, categories, flags
#   -  cluster-scoped        s  status subresource      r  scale subresource
#   d  deletion answers with the object                 c  create is the only verb
_CORE = """
bindings                Binding                 -       -    c
configmaps              ConfigMap               cm      -
endpoints               Endpoints               ep      -
events                  Event                   ev      -
limitranges             LimitRange              limits  -
namespaces              Namespace               ns      -    -sd
nodes                   Node                    no      -    -s
persistentvolumeclaims  PersistentVolumeClaim   pvc     -    sd
persistentvolumes       PersistentVolume        pv      -    -sd
pods                    Pod                     po      all  sd
podtemplates            PodTemplate             -       -    d
replicationcontrollers  ReplicationController   rc      all  sr
resourcequotas          ResourceQuota           quota   -    sd
secrets                 Secret                  -       -
serviceaccounts         ServiceAccount          sa      -    d
services                Service                 svc     all  sd
"""
_GROUPS = {
    "/v1": _CORE,
    "admissionregistration.k8s.io/v1": """
mutatingwebhookconfigurations      MutatingWebhookConfiguration      -  api-extensions  -
validatingadmissionpolicies        ValidatingAdmissionPolicy         -  api-extensions  -s
validatingadmissionpolicybindings  ValidatingAdmissionPolicyBinding  -  api-extensions  -
validatingwebhookconfigurations    ValidatingWebhookConfiguration    -  api-extensions  -
""",
    "apiextensions.k8s.io/v1": """
customresourcedefinitions  CustomResourceDefinition  crd,crds  api-extensions  -s
""",
    "apps/v1": """
controllerrevisions  ControllerRevision  -       -
daemonsets           DaemonSet           ds      all  s
deployments          Deployment          deploy  all  sr
replicasets          ReplicaSet          rs      all  sr
statefulsets         StatefulSet         sts     all  sr
""",
    "authentication.k8s.io/v1": """
selfsubjectreviews  SelfSubjectReview  -  -  -c
tokenreviews        TokenReview        -  -  -c
""",
    "authorization.k8s.io/v1": """
localsubjectaccessreviews  LocalSubjectAccessReview  -  -  c
selfsubjectaccessreviews   SelfSubjectAccessReview   -  -  -c
selfsubjectrulesreviews    SelfSubjectRulesReview    -  -  -c
subjectaccessreviews       SubjectAccessReview       -  -  -c
""",
    "autoscaling/v2": """
horizontalpodautoscalers  HorizontalPodAutoscaler  hpa  all  s
""",
    "autoscaling/v1": """
horizontalpodautoscalers  HorizontalPodAutoscaler  hpa  all  s
""",
    "batch/v1": """
cronjobs  CronJob  cj  all  s
jobs      Job      -   all  s
""",
    "coordination.k8s.io/v1": """
leases  Lease  -  -
""",
    "discovery.k8s.io/v1": """
endpointslices  EndpointSlice  -  -
""",
    "events.k8s.io/v1": """
events  Event  ev  -
""",
    "networking.k8s.io/v1": """
ingressclasses   IngressClass   -       -  -
ingresses        Ingress        ing     -  s
networkpolicies  NetworkPolicy  netpol  -
""",
    "policy/v1": """
poddisruptionbudgets  PodDisruptionBudget  pdb  -  s
""",
    "rbac.authorization.k8s.io/v1": """
clusterrolebindings  ClusterRoleBinding  -  -  -
clusterroles         ClusterRole         -  -  -
rolebindings         RoleBinding         -  -
roles                Role                -  -
""",
    "resource.k8s.io/v1": """
deviceclasses           DeviceClass            -  -  -
resourceclaims          ResourceClaim          -  -  sd
resourceclaimtemplates  ResourceClaimTemplate  -  -
resourceslices          ResourceSlice          -  -  -
""",
    "scheduling.k8s.io/v1": """
priorityclasses  PriorityClass  pc  -  -
""",
    "storage.k8s.io/v1": """
csidrivers      CSIDriver     -   -  -d
storageclasses  StorageClass  sc  -  -d
""",
}
_STORED_AS = {
    ("events.k8s.io", "events"): Resource("", "v1", "events", "Event"),
    ("autoscaling", "horizontalpodautoscalers"): Resource(
        "autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"
    ),
}
_NAME_RULES = {
    "namespaces": "label",
    "services": "label1035",
    "clusterroles.rbac.authorization.k8s.io": "path",
    "clusterrolebindings.rbac.authorization.k8s.io": "path",
    "roles.rbac.authorization.k8s.io": "path",
    "rolebindings.rbac.authorization.k8s.io": "path",
}
_SELECTABLE = {
    "pods": (
        "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
        "status.phase", "status.podIP", "status.nominatedNodeName",
    ),
    "events": (
        "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
        "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason",
        "reportingComponent", "source", "type",
    ),
    "events.events.k8s.io": (
        "regarding.kind", "regarding.namespace", "regarding.name", "regarding.uid", "regarding.apiVersion",
        "regarding.resourceVersion", "regarding.fieldPath", "reason", "reportingController", "type",
    ),
    "namespaces": ("status.phase",),
    "nodes": ("spec.unschedulable",),
    "secrets": ("type",),
    "services": ("spec.clusterIP", "spec.type"),
    "jobs.batch": ("status.successful",),
    "replicasets.apps": ("status.replicas",),
    "replicationcontrollers": ("status.replicas",),
}  # fmt: skip
_EXTRAS: dict[str, tuple[tuple[str, str, tuple[str, ...]], ...]] = {
    "namespaces": (("finalize", "Namespace", ("update",)),),
    "pods": (
        ("binding", "Binding", _CREATE),
        ("ephemeralcontainers", "Pod", _READ_WRITE),
        ("log", "Pod", ("get",)),
    ),
}


def descriptions(strategy_of: Callable[[Resource], Strategy]) -> Iterator[Description]:
    """All built-in resources, in the order in which discovery lists their groups."""
    for api_version, table in _GROUPS.items():
        group, _, version = api_version.partition("/")
        for line in table.strip().splitlines():
            yield _describe(group, version, *line.split(), strategy_of=strategy_of)


def _describe(
    group: str,
    version: str,
    plural: str,
    kind: str,
    short: str,
    categories: str,
    flags: str = "",
    *,
    strategy_of: Callable[[Resource], Strategy],
) -> Description:
    resource = Resource(group, version, plural, kind, namespaced="-" not in flags)
    verbs = _CREATE if "c" in flags else ALL_VERBS
    return Description(
        resource=resource,
        strategy=strategy_of(resource),
        short_names=() if short == "-" else tuple(short.split(",")),
        categories=() if categories == "-" else (categories,),
        verbs=tuple(verb for verb in verbs if (plural, verb) != ("namespaces", "deletecollection")),
        status="s" in flags,
        scale=Scale(label_selector="spec.selector") if "r" in flags else None,
        storage=_STORED_AS.get((group, plural)),
        selectable=_SELECTABLE.get(str(resource), ()),
        names=_NAME_RULES.get(str(resource), "subdomain"),
        returns_deleted="d" in flags,
        extras=_EXTRAS.get(str(resource), ()),
    )
