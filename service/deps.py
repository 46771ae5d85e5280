"""Everything a route may ask for."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPBearer

from search.store.repo import Store
from service.access import Access, require
from service.settings import ServiceSettings
from service.users import User

# Declares the scheme in OpenAPI; `current_user` reads the header itself, with its own errors.
BEARER = HTTPBearer(auto_error=False, description="A token of `search token new`.")


def get_store(request: Request) -> Store:
    """The open store."""
    store: Store = request.app.state.store
    return store


def get_settings(request: Request) -> ServiceSettings:
    """The service's settings."""
    settings: ServiceSettings = request.app.state.settings
    return settings


def get_access(request: Request) -> Access:
    """Who may do what."""
    access: Access = request.app.state.access
    return access


def current_user(
    request: Request,
    access: Annotated[Access, Depends(get_access)],
    bearer: Annotated[object, Depends(BEARER)],
) -> User:
    """The user of the request; anybody known may read.

    Raises:
        ProblemError: 401, 403 or 429.
    """
    return access.identify(request)


def submitter(user: Annotated[User, Depends(current_user)]) -> User:
    """A user who may start and steer studies; else 403."""
    require(user, "submit")
    return user


def administrator(user: Annotated[User, Depends(current_user)]) -> User:
    """A user who may also delete; else 403."""
    require(user, "admin")
    return user


StoreDep = Annotated[Store, Depends(get_store)]
SettingsDep = Annotated[ServiceSettings, Depends(get_settings)]
AccessDep = Annotated[Access, Depends(get_access)]
Reader = Annotated[User, Depends(current_user)]
Submitter = Annotated[User, Depends(submitter)]
Administrator = Annotated[User, Depends(administrator)]
