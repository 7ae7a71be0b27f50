"""What the dashboard knows of a cluster: one view for each user, kept current by informers while somebody looks."""
