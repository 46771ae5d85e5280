"""Care of an installation and its files: what is wrong with it, and what may be deleted."""
