"""LLMInferenceServices and the configurations they build on."""
