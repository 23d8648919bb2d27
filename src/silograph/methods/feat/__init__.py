"""feat: one private release answers every question."""
