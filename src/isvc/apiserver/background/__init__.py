"""Background work of the server: garbage collection, finalizers of namespaces and CRDs, expiry of events, quotas."""
