"""How a component runs, one module per deployment mode. Each offers the functions of `builders.Workload`."""
