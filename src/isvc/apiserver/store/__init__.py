"""Storage: an in-memory view of what is committed, and the log on disk that it is rebuilt from."""
