"""The sidecar of a model server: it logs payloads as CloudEvents, batches predictions, and pulls models.

It takes KServe's agent's flags and variables and answers as that does, so that it can take its place on a cluster and
is what `isvc up` runs for the agent's image. It stands alone: nothing else of isvc is imported.
"""
