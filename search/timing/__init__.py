"""Times of forward and training passes, measured so that they can be compared."""
