"""Which rule is for a request: Ingresses, HTTPRoutes and VirtualServices, compiled into one table."""
