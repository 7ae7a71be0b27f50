"""What a service consists of: each builder turns one component's part of the spec into pods and metadata."""
