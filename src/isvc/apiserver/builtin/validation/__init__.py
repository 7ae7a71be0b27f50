"""What Kubernetes refuses in its own kinds, in its own words: the checks that people and programs run into."""
