"""The node: pods become local processes, without containers and without root.

What a container would see differently is translated, and only that: mount paths become folders of the pod, container
ports become free ports of this machine, images become programs from a table.

`node` gives every pod a worker of `pods`, whose `containers` are `processes` that run `programs` on folders of
`volumes`, in a `sandbox` if the user wants one. The API server asks `kubelet_api`, and its `streams` lead into pods.
"""
