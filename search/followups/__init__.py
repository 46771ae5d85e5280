"""Studies made from a finished one: its picks at other lengths or widths, and on recall."""
