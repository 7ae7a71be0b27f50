"""LLMInferenceService and LLMInferenceServiceConfig, in both their versions."""
