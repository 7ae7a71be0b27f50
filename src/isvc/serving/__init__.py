"""What controllers and webhooks share about serving models: configuration, runtimes, storage, credentials, hosts."""
