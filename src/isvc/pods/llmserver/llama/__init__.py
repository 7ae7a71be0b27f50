"""llama.cpp: its files, its process, and whose turn it is there."""
