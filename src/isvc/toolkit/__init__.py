"""What knows Kubernetes but not serving: the client, caches and queues, controllers and managers, webhooks, election."""
