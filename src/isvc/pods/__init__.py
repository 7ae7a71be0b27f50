"""Programs that run in pods. Each stands alone: none imports another, nor what the managers are made of."""
