"""Defaulting: how admission completes our kinds before they are stored."""
