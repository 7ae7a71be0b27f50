"""The node: pods become local processes, without containers and without root.

What a container would see differently is translated, and only that: mount paths become folders of the pod, container
ports become free ports of this machine, images become programs from a table.
"""
