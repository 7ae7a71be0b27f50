"""Looks at a cluster, or at documents, and says what should exist, what does, and why not. Changes nothing."""
