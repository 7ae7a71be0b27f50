"""Local model caches: which models are kept on which nodes, and the volumes through which services read them.

The kind of a LocalModelCache is here, that of a LocalModelNamespaceCache in `namespace`: they differ in names and
owners of volumes alone. What each node should have is decided in `lists`, for all caches at once.
"""
