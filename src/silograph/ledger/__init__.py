"""A silo's record of the privacy budget that was spent and of what is left."""
