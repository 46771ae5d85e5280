"""Slots: a device and the process that trains on it, what is said to it, how it may fail."""
