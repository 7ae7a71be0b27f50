"""Kubernetes as data: names, owners, selectors, quantities, patches, conditions, errors. No I/O lives here."""
