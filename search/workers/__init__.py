"""Workers: processes that claim trials, have them trained and bring back what came of it."""
