"""What the controllers would do for a service: their own plans, made from a snapshot. One module for each kind."""
