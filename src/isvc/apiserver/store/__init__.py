"""Objects at rest: an in-memory view of what is committed, and the log it can be rebuilt from."""
