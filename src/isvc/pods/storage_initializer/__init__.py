"""The program that an init container starts: `isvc-storage-initializer SRC DEST [SRC DEST …]`.

It brings each model from its source into its folder, whole or not at all. Every scheme says only what files there are
and how to read one from an offset; retries, resuming, checksums, archives and placement are the same for all. It
imports nothing else of this package, so that its image stays small, and client libraries only when a URI needs them.
"""
