"""How the agent logs payloads: the ConfigMap's settings, and over them the service's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from isvc.api.codec import decode
from isvc.api.inferenceservice.components import LoggerSpec, LoggerStorageSpec
from isvc.kube.objects import Object, annotations_of, dig, labels_of, name_of, namespace_of
from isvc.serving import annotations as names
from isvc.serving.config.sections import LoggerConfig

DEFAULT_SERVICE_ACCOUNT: Final = "logger-sa"


@dataclass(frozen=True, slots=True)
class LoggerSettings:
    """Read when a pod is made, from the predictor's logger, also for the pods of a transformer.

    `storage` is None when logs are sent to a sink rather than kept in a store.
    """

    config: LoggerConfig
    storage: LoggerStorageSpec | None
    marshaller_url: str
    batch_size: int
    batch_interval: str

    @classmethod
    def of(cls, config: LoggerConfig, service: Object | None) -> LoggerSettings:
        written = dig(service, "spec", "predictor", "logger")
        if written is None:
            return cls(config, config.storage, config.marshaller_url, config.batch_size, config.batch_interval)
        own = decode(LoggerSpec, written)
        return cls(
            config,
            own.storage,
            config.marshaller_url if own.marshaller_url is None else own.marshaller_url,
            config.batch_size if own.batch_size is None else own.batch_size,
            config.batch_interval if own.batch_interval is None else own.batch_interval,
        )

    @property
    def service_account(self) -> str:
        """Returns whose credentials the store needs; empty when there is no store."""
        return (self.storage.service_account_name or DEFAULT_SERVICE_ACCOUNT) if self.storage else ""

    @property
    def storage_key(self) -> str:
        """Returns the entry of the storage secret that has the store's credentials; empty when none is named."""
        return (self.storage.key or "") if self.storage else ""

    def url(self, pod: Object) -> str:
        return annotations_of(pod).get(names.LOGGER_SINK_URL, self.config.default_url)

    def arguments(self, pod: Object) -> list[str]:
        annotations, labels = annotations_of(pod), labels_of(pod)
        arguments = ["--log-url", self.url(pod)]
        arguments += ["--source-uri", name_of(pod)]
        arguments += ["--log-mode", annotations.get(names.LOGGER_MODE, "all")]
        arguments += ["--inference-service", labels.get(names.SERVICE, "")]
        arguments += ["--namespace", namespace_of(pod)]
        arguments += ["--endpoint", labels.get(names.ENDPOINT, "")]
        arguments += ["--component", labels.get(names.COMPONENT, "")]
        arguments += self._storage_arguments()
        if names.LOGGER_METADATA_HEADERS in annotations:
            arguments += ["--metadata-headers", annotations[names.LOGGER_METADATA_HEADERS]]
        if names.LOGGER_METADATA_ANNOTATIONS in annotations:
            keys = annotations[names.LOGGER_METADATA_ANNOTATIONS].split(",")
            pairs = [f"{key}={annotations[key]}" for key in keys if key in annotations]
            arguments += ["--metadata-annotations", ",".join(pairs)]
        if self.config.ca_cert_file:
            arguments += ["--logger-ca-cert-file", self.config.ca_cert_file]
        return [*arguments, "--logger-tls-skip-verify", "true" if self.config.tls_skip_verify else "false"]

    def _storage_arguments(self) -> list[str]:
        storage = self.storage or LoggerStorageSpec()
        optional = {
            "--log-store-path": storage.path,
            "--log-store-format": (storage.parameters or {}).get("format"),
            "--log-marshaller-url": self.marshaller_url,
            "--log-batch-size": str(self.batch_size) if self.batch_size > 0 else "",
            "--log-batch-interval": self.batch_interval,
        }
        return [word for flag, value in optional.items() if value for word in (flag, value)]
