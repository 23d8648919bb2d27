"""feat+: a release and local answers."""
