"""Method ``feat``: one private release answers every query."""
