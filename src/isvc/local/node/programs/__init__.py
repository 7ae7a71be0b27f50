"""What runs in the place of a container image: a program of this machine, new or forked from one that is warm."""
