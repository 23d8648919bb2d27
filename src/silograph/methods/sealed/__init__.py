"""Method ``sealed``: exact counts under secret sharing, opened with noise."""
