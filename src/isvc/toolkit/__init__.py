"""What knows Kubernetes but not serving: client, caches and queues, controllers and managers, webhooks, election."""
