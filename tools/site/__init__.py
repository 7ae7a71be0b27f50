"""The documentation site: what `make docs` builds from docs/, from files of the repository and from the code."""
