"""Processes of this machine: their start and end, their input, output and usage. They know nothing of pods."""
