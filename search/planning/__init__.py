"""What a study will cost and what it can decide, measured before anything is trained for it."""
