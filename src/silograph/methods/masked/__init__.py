"""The masked union."""
