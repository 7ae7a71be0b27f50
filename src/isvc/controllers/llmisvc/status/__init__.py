"""The status of an LLMInferenceService, folded from what was observed, planned and applied."""
