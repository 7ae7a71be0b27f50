"""The records of the built-in kinds, by API group."""
