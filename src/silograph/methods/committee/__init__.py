"""The union of a committee of four."""
