"""The version of vLLM whose flags and API this server follows; start scripts ask for it to choose flags."""

VLLM_VERSION = "0.22.0"
