"""Envoy's configuration, as the JSON that its documentation shows: pure functions from rules and Services to values."""
