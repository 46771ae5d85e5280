"""Training a stored trial again, and what the comparison with the record says."""
