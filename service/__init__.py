"""The HTTP service and dashboard: shows what `search` computes and accepts studies.

It has no science of its own and may import from `search` and `mixers`, never the reverse.
"""
