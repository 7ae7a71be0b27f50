"""A Configuration: every change of its template is a Revision of its own, which never changes again."""

from __future__ import annotations

from isvc.kube.conditions import Conditions, ConditionSet, condition_of, conditions_of
from isvc.kube.errors import ApiError
from isvc.kube.objects import Key, Object, dig, generation_of, labels_of, name_of, namespace_of, uid_of
from isvc.local.controllers.children import NotOwned, ensure
from isvc.local.knative.kinds import (
    CONFIGURATION,
    CONFIGURATION_GENERATION,
    CONFIGURATION_UID,
    CONFIGURATIONS,
    REVISIONS,
    SERVICE,
    SERVICE_UID,
)
from isvc.serving.names import child
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller, OwnerOf, Watch

CONDITIONS = ConditionSet(())
TIMEOUT_SECONDS = 300


def controller(context: Context) -> Controller:
    async def reconcile(key: Key) -> None:
        configuration = context.find(CONFIGURATIONS, key)
        if configuration is None:
            return
        before = configuration.get("status") or {}
        status = CONDITIONS.edit(conditions_of(configuration), context.timestamp())
        status.initialize()
        fields: Object = {"observedGeneration": generation_of(configuration)}
        if ready := before.get("latestReadyRevisionName"):
            fields["latestReadyRevisionName"] = ready
        try:
            revision = await ensure(context, REVISIONS, revision_of(configuration), CONFIGURATIONS.typed(configuration))
            fields |= _follow(status, revision, fields)
        except (ApiError, NotOwned) as error:
            words = error.message if isinstance(error, ApiError) else str(error)
            status.mark_false("Ready", "RevisionFailed", f"Revision creation failed with message: {words}.")
        await context.write_status(CONFIGURATIONS, configuration, {**fields, "conditions": status.result()})

    watches = [Watch(CONFIGURATIONS), Watch(REVISIONS, to=OwnerOf(CONFIGURATIONS))]
    return Controller("knative-configuration", reconcile, watches)


def revision_of(configuration: Object) -> Object:
    """Returns the Revision of the template as it is now, named by the Configuration's generation."""
    template = configuration["spec"]["template"]
    metadata, generation = template.get("metadata") or {}, dig(configuration, "metadata", "generation") or 1
    of_service = {key: value for key, value in labels_of(configuration).items() if key in (SERVICE, SERVICE_UID)}
    labels = {
        **(metadata.get("labels") or {}),
        **of_service,
        CONFIGURATION: name_of(configuration),
        CONFIGURATION_UID: uid_of(configuration),
        CONFIGURATION_GENERATION: str(generation),
    }
    defaults = {"containerConcurrency": 0, "timeoutSeconds": TIMEOUT_SECONDS, "enableServiceLinks": False}
    return {
        "metadata": {
            "name": metadata.get("name") or child(name_of(configuration), f"-{generation:05d}"),
            "namespace": namespace_of(configuration),
            "labels": labels,
            "annotations": metadata.get("annotations") or {},
        },
        "spec": {**defaults, **template["spec"]},
    }


def _follow(status: Conditions, revision: Object, fields: Object) -> Object:
    """Returns what the newest Revision makes of the Configuration."""
    name = name_of(revision)
    ready = condition_of(revision, "Ready")
    match ready.get("status"):
        case "True":
            status.mark_true("Ready")
            return {"latestCreatedRevisionName": name, "latestReadyRevisionName": name}
        case "False" if fields.get("latestReadyRevisionName") != name:
            words = f'Revision "{name}" failed with message: {ready.get("message", "")}.'
            status.mark_false("Ready", "RevisionFailed", words)
        case _ if fields.get("latestReadyRevisionName") != name:
            status.mark_unknown("Ready")
    return {"latestCreatedRevisionName": name}
