"""How a service is reached, one module per kind of ingress. Each offers the functions of `builders.Ingress`."""
