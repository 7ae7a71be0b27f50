"""The real controllers and webhooks on an API server in memory: what they would do, without a cluster.

`render`, `diff` and `effective` look at what a simulation wrote; nothing here decides anything that controllers decide.
"""
