"""The union without protection, for local runs."""
