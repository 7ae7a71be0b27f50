"""What `isvc up` runs beside the managers: the rest of a cluster on one machine."""
