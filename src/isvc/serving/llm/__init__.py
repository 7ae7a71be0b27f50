"""LLMInferenceServices: what presets make of them."""
