"""The audit: checks that every printed epsilon is an upper bound, by enumeration and by trials."""
