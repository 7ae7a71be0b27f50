"""Object stores as pods know them: KServe's variables and secrets, the vendors' clients, and what their errors mean.

The storage initializer reads models through it, the agent writes logs. Client libraries are imported when they are
needed, for each is an extra.
"""
