"""What was spent, and what is left."""
