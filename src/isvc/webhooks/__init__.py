"""Admission and conversion of our kinds and of pods: thin adapters over `api` and `serving`."""
