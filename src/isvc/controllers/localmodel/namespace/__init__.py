"""Caches of one namespace: as those of the cluster, for the services of that namespace alone."""
