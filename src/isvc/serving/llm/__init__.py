"""What is shared about LLMInferenceServices: presets and their templates, merging of specs, names, labels."""
