"""LocalModelNodes: the models of one node, downloaded by Jobs into a folder, and removed when nothing asks for them."""
