"""Which rule is for a request: Ingresses, HTTPRoutes and VirtualServices, in one form and in one table."""
