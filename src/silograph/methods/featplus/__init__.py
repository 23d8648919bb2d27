"""Method ``feat+``: a release combined with local answers."""
