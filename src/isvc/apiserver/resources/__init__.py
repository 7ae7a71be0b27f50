"""The resources that are served: a description of each, the strategy of its kind, and the registry of all."""
