"""The built-in mixers, one file each; found through the entry points like anybody else's."""
