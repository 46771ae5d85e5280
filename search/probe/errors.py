"""Why a network cannot be probed."""

from __future__ import annotations

from search.errors import InputError


class ProbeError(InputError):
    """The contexts, the vocabulary or the network's outputs do not admit a reading."""
