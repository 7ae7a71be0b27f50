"""What all kinds have in common: metadata, the syntax of names, and managedFields."""
