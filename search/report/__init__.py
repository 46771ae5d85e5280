"""The answer in words, tables and pages; every number comes from `search.answers`."""
