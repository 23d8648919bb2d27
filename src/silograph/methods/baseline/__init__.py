"""The baseline: every silo reports by itself."""
