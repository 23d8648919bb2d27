"""Estimators: from a noisy graph to answers with standard errors."""
