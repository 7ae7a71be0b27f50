"""What is said about a service: conditions, components and its model, folded from what was observed and done."""
