"""Experiments: the only place for printed forms that do not hold, and for seeded draws."""
