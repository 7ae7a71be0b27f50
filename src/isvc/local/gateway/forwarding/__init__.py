"""A request on its way to an endpoint, and the answer on its way back: over HTTP/1.1, HTTP/2 or a WebSocket."""
