"""What happens without a request: clean-up after definitions, owners and namespaces that go away."""
