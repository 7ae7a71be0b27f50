"""Validation of Kubernetes' own kinds, with its messages: the checks that people and programs run into."""
