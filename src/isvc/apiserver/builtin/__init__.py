"""Kubernetes' own kinds: a record for each, the rules they follow, and what the server adds to them."""
