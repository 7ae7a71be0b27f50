"""KServe's control plane in Python, for clusters and for laptops."""
