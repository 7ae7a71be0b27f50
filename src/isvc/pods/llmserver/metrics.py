"""Prometheus metrics under vLLM's names, so that dashboards, autoscalers and endpoint pickers need no change."""

from __future__ import annotations

import time
from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from isvc.pods.llmserver.llama.scheduler import Scheduler

_LABELS = ("model_name", "engine")
_ENGINE = "0"
# As vLLM has them: a quantile over both kinds of servers needs the same bounds.
_FIRST_TOKEN = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640),
    2560,
)
_NEXT_TOKEN = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80)
_REQUEST = (0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680)


class Metrics:
    """One model's figures; the name is the one that the server was given first, as in vLLM."""

    def __init__(self, model: str, max_model_len: int) -> None:
        self.registry = CollectorRegistry()
        self._model = model
        tokens = _one_two_five(max_model_len)
        self._running = self._gauge("num_requests_running", "Requests that are being answered.")
        self._waiting = self._gauge("num_requests_waiting", "Requests that wait for a free sequence.")
        self._cache = [
            self._gauge("kv_cache_usage_perc", "Share of the KV cache in use; 1 is all of it."),
            self._gauge("gpu_cache_usage_perc", "The older name of kv_cache_usage_perc."),
        ]
        self._prompt = self._counter("prompt_tokens", "Tokens of prompts.")
        self._generated = self._counter("generation_tokens", "Tokens generated.")
        self._cache_queries = self._counter("prefix_cache_queries", "Prompt tokens looked up in the prefix cache.")
        self._cache_hits = self._counter("prefix_cache_hits", "Prompt tokens found in the prefix cache.")
        self._success = Counter(
            "vllm:request_success",
            "Answers by reason of their end.",
            (*_LABELS, "finished_reason"),
            registry=self.registry,
        )
        self.first_token = self._histogram("time_to_first_token_seconds", "Time to the first token.", _FIRST_TOKEN)
        self.between_tokens = self._histogram("inter_token_latency_seconds", "Time between tokens.", _NEXT_TOKEN)
        self.queued = self._histogram("request_queue_time_seconds", "Time spent waiting.", _REQUEST)
        self._total = self._histogram("e2e_request_latency_seconds", "Time of a request from end to end.", _REQUEST)
        self._prompt_length = self._histogram("request_prompt_tokens", "Tokens of a request's prompt.", tokens)
        self._answer_length = self._histogram("request_generation_tokens", "Tokens of a request's answer.", tokens)
        self._loras = Gauge(
            "vllm:lora_requests_info",
            "LoRA adapters in use; the value is the time of the report.",
            ("max_lora", "waiting_lora_adapters", "running_lora_adapters"),
            registry=self.registry,
        )

    def observe_answer(self, reason: str, prompt: int, cached: int, generated: int, seconds: float) -> None:
        """Counts a finished sequence."""
        self._prompt.inc(prompt)
        self._cache_queries.inc(prompt)
        self._cache_hits.inc(cached)
        self._generated.inc(generated)
        self._success.labels(self._model, _ENGINE, reason).inc()
        self._prompt_length.observe(prompt)
        self._answer_length.observe(generated)
        self._total.observe(seconds)

    def expose(self, scheduler: Scheduler, cache_usage: float, loras: int) -> bytes:
        self._running.set(scheduler.running)
        self._waiting.set(scheduler.waiting)
        for gauge in self._cache:
            gauge.set(cache_usage)
        if loras:
            self._loras.clear()
            waiting, running = (",".join(sorted(names)) for names in scheduler.adapters())
            self._loras.labels(str(loras), waiting, running).set(time.time())
        return generate_latest(self.registry)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(f"vllm:{name}", text, _LABELS, registry=self.registry).labels(self._model, _ENGINE)

    def _counter(self, name: str, text: str) -> Counter:
        return Counter(f"vllm:{name}", text, _LABELS, registry=self.registry).labels(self._model, _ENGINE)

    def _histogram(self, name: str, text: str, buckets: Sequence[float]) -> Histogram:
        family = Histogram(f"vllm:{name}", text, _LABELS, buckets=buckets, registry=self.registry)
        return family.labels(self._model, _ENGINE)


def _one_two_five(largest: int) -> list[float]:
    """Returns 1, 2, 5, 10, 20, 50, … up to the largest."""
    bounds = [factor * 10**power for power in range(len(str(largest))) for factor in (1, 2, 5)]
    return [float(bound) for bound in bounds if bound <= largest]
