"""Processes of this machine: their start and end, their input and output, and what they use of it."""
