"""What can be asked of a resource, one module per verb; `pipeline` is what the writing ones share."""
