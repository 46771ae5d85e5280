"""Figures of an answer, and how they are saved."""
