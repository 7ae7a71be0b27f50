"""What the fields of pods and containers are, for `kubectl explain` of kinds that have them beside fields of their own.

Kubernetes' own descriptions of them would make a CRD of ours as large as etcd takes.
"""

from __future__ import annotations

from typing import Final

from isvc.kube.schemas import Schema

_POD: Final = {
    "activeDeadlineSeconds": "After how many seconds the pod is ended, counted from its start.",
    "affinity": "Nodes and neighbours that the pod prefers, needs or avoids.",
    "automountServiceAccountToken": "Whether containers get a token of the service account.",
    "containers": "Containers of the pod. The one named kserve-container is the model server.",
    "dnsConfig": "Settings of name resolution beside those of dnsPolicy.",
    "dnsPolicy": "How names are resolved: ClusterFirst, ClusterFirstWithHostNet, Default or None.",
    "enableServiceLinks": "Whether containers get variables with the addresses of Services.",
    "ephemeralContainers": "Containers that are added to a running pod; they cannot be set here.",
    "hostAliases": "Lines to add to /etc/hosts.",
    "hostIPC": "Whether to share the node's IPC namespace.",
    "hostNetwork": "Whether to share the node's network.",
    "hostPID": "Whether to share the node's process namespace.",
    "hostUsers": "Whether to share the node's users; false gives the pod a user namespace of its own.",
    "hostname": "Host name of the pod.",
    "hostnameOverride": "Host name that the pod sees, in place of all others.",
    "imagePullSecrets": "Secrets with which images are pulled.",
    "initContainers": "Containers that run to their end, one after the other, before the others start.",
    "nodeName": "The node to run on, past the scheduler.",
    "nodeSelector": "Labels that the node must have.",
    "os": "The operating system of the pod.",
    "overhead": "Resources that the runtime class itself takes.",
    "preemptionPolicy": "Whether pods of lower priority give way: PreemptLowerPriority or Never.",
    "priority": "The priority as a number; set by admission from priorityClassName.",
    "priorityClassName": "Name of the PriorityClass.",
    "readinessGates": "Conditions that have to be True for the pod to count as ready.",
    "resourceClaims": "Devices that the pod claims.",
    "resources": "CPU and memory of the pod as a whole.",
    "restartPolicy": "When containers are started again: Always, OnFailure or Never.",
    "runtimeClassName": "Name of the RuntimeClass that runs the pod.",
    "schedulerName": "The scheduler that places the pod.",
    "schedulingGates": "What has to be removed before the pod is placed.",
    "securityContext": "User, groups and other security settings of all containers.",
    "serviceAccount": "The older name of serviceAccountName.",
    "serviceAccountName": "The ServiceAccount to run as. Credentials for downloads are taken from its Secrets.",
    "setHostnameAsFQDN": "Whether the host name is the fully qualified one.",
    "shareProcessNamespace": "Whether containers see each other's processes.",
    "subdomain": "Subdomain of the pod's name.",
    "terminationGracePeriodSeconds": "How many seconds the pod has to end after it was asked to.",
    "tolerations": "Taints of nodes that the pod puts up with.",
    "topologySpreadConstraints": "How pods are spread over zones, nodes and the like.",
    "volumes": "Volumes that containers can mount.",
    "workloadRef": "The Workload that the pod is scheduled with.",
}

_CONTAINER: Final = {
    "args": "Arguments of the command; those of the image if left out.",
    "command": "What is run; the image's entry point if left out.",
    "env": "Environment variables.",
    "envFrom": "ConfigMaps and Secrets whose entries become environment variables.",
    "image": "The image to run.",
    "imagePullPolicy": "When the image is pulled: Always, IfNotPresent or Never.",
    "lifecycle": "What is done after the start and before the end of the container.",
    "livenessProbe": "The check whose failure restarts the container.",
    "name": "Name of the container.",
    "ports": "Ports that the container listens on.",
    "readinessProbe": "The check that decides whether the pod gets requests.",
    "resizePolicy": "Whether a change of resources restarts the container.",
    "resources": "CPU, memory, GPUs and other resources that the container requests and may use.",
    "restartPolicy": "Always makes a sidecar of an init container.",
    "restartPolicyRules": "Exit codes that restart the container.",
    "securityContext": "User, capabilities and other security settings of the container.",
    "startupProbe": "The check before which the other probes do not run.",
    "stdin": "Whether standard input stays open.",
    "stdinOnce": "Whether standard input ends with the first client that attaches.",
    "terminationMessagePath": "The file from which the container's last message is read.",
    "terminationMessagePolicy": "Whether the end of the log is the last message: File or FallbackToLogsOnError.",
    "tty": "Whether the container has a terminal.",
    "volumeDevices": "Block devices of the container.",
    "volumeMounts": "Where volumes are mounted.",
    "workingDir": "The working directory; that of the image if left out.",
}

DESCRIPTIONS: Final = {"io.k8s.api.core.v1.PodSpec": _POD, "io.k8s.api.core.v1.Container": _CONTAINER}
_LISTS_OF_CONTAINERS: Final = ("containers", "initContainers")


def describe(definition: str, properties: dict[str, Schema]) -> dict[str, Schema]:
    """Returns the properties of a built-in type with descriptions; those of a pod's containers, too."""
    notes = DESCRIPTIONS.get(definition, {})
    result = {
        name: schema | ({"description": notes[name]} if name in notes else {}) for name, schema in properties.items()
    }
    if notes is _POD:
        for name in (each for each in _LISTS_OF_CONTAINERS if each in result):
            items = result[name]["items"]
            fields = describe("io.k8s.api.core.v1.Container", items["properties"])
            result[name] |= {"items": items | {"properties": fields}}
    return result
