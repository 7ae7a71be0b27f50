"""A folder for the PYTHONPATH of pods, whose `sitecustomize` Python imports at its start."""
