"""The baseline: every silo reports its own noisy bits."""
