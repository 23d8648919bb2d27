"""Hub search: noisy sums of the silos' degrees, whose largest name the hubs of a later study."""
