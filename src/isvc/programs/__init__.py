"""Composition roots: how the parts below become the programs that run on a cluster."""
