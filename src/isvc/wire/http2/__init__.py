"""HTTP/2 without Kubernetes: both sides of a connection, streamed, with bounded memory. Frames are h2's."""
