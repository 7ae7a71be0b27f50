"""Which endpoint takes a request: one of the least busy of a Service, or the best of an InferencePool."""
