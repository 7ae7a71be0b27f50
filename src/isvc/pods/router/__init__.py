"""The program that an InferenceGraph runs as: it takes a request through the graph's nodes and services.

It answers as KServe's router does, on the same flags and variables, so that it can take its place on a cluster and is
what `isvc up` runs for the router's image. It stands alone: nothing else of isvc is imported.
"""
