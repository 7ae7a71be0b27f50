"""What people do with a service, for commands and dashboard alike: find it, ask it, read its logs and history."""
