"""The audit: is every printed epsilon an upper bound? By enumeration, and by trying."""
