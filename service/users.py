"""Who asks: roles, tokens, and the rules under which a request is let in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Role = Literal["read", "submit", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)
LOCAL = "local"


@dataclass(frozen=True)
class User:
    """Who a request comes from.

    Attributes:
        name: Name of the token; `local` on the machine itself while the store has no token.
        role: `read` looks, `submit` also starts and steers studies, `admin` also deletes.
        via: How it showed that: with a header, a browser's cookie, or by being local.
        csrf: What a browser must send back with each change; empty where it has no cookie.
    """

    name: str
    role: Role
    via: Literal["header", "cookie", "local"]
    csrf: str = ""

    def may(self, role: Role) -> bool:
        """Whether this user has a role or a higher one."""
        return ROLES.index(self.role) >= ROLES.index(role)
