"""The paper's experiments, figures and verdicts."""
