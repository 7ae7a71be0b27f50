"""LLMInferenceServiceConfigs: who uses one, and that none goes while it is used."""
