"""LocalModelNodes: the list of models of each node, which its program downloads and deletes by.

Many caches have an entry in one list. It has one author, who writes all of them at once: none can take away another's,
and a hundred new caches are one write.
"""
