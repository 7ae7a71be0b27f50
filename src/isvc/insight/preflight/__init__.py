"""What of a cluster is missing, too old or in the way, before a manager is installed. Nothing is written."""
