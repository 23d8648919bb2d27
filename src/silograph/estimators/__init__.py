"""From a noisy graph to answers with error bars."""
