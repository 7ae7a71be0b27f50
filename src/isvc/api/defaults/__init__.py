"""What objects become before they are stored."""
