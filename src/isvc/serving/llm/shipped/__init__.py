"""The presets that come with the product: configurations that services take by their shape.

They are made here, from parts that several share, and written to `manifests/` by `tools/manifests`.
"""

from __future__ import annotations

from isvc.api.resources import LLM_INFERENCE_SERVICE_CONFIGS
from isvc.kube.objects import Object
from isvc.serving.llm.presets import PREFIX
from isvc.serving.llm.shipped import routing, servers

SPECS: dict[str, Object] = {
    "template": servers.single_node(),
    "decode-template": servers.decode(),
    "prefill-template": servers.prefill(),
    "worker-data-parallel": servers.data_parallel(),
    "decode-worker-data-parallel": servers.decode_data_parallel(),
    "prefill-worker-data-parallel": servers.prefill_data_parallel(),
    "scheduler": routing.scheduler(),
    "router-route": routing.route(),
    "scheduler-latency-predictor": routing.latency_predictor(),
    "tokenizer": routing.tokenizer(),
    "tracing": routing.tracing(),
}


def shipped_presets(prefix: str = PREFIX) -> list[Object]:
    return [
        {
            "apiVersion": LLM_INFERENCE_SERVICE_CONFIGS.api_version,
            "kind": LLM_INFERENCE_SERVICE_CONFIGS.kind,
            "metadata": {"name": f"{prefix}config-llm-{name}"},
            "spec": spec,
        }
        for name, spec in SPECS.items()
    ]
