"""Questions to a noisy graph: the release, and an unbiased estimator for each query."""
