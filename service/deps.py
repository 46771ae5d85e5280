"""Everything a route may ask for."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request, params
from fastapi._compat import ModelField
from fastapi.dependencies.utils import get_flat_params
from fastapi.security import HTTPBearer

from mixers.registry import suggestion
from search.store.repo import Store
from service.access import Access, require
from service.answers import Answers
from service.hub import Hub
from service.problems import wrong_fields
from service.rowfeed import RowFeed
from service.settings import ServiceSettings
from service.users import User

# Declares the scheme in OpenAPI; `current_user` reads the header itself, with its own errors.
BEARER = HTTPBearer(auto_error=False, description="A token of `search token new`.")


def known_parameters(request: Request) -> None:
    """Refuse a query parameter that the route does not have, instead of not heeding it.

    Raises:
        ProblemError: 422.
    """
    route = request.scope["route"]
    known = {param.alias for param in get_flat_params(route.dependant) if is_query(param)}
    unknown = sorted(set(request.query_params) - known)
    if unknown:
        raise wrong_fields(
            [(f"query.{name}", f"unknown; {suggestion(name, known)}") for name in unknown]
        )


def is_query(param: ModelField) -> bool:
    """Whether a parameter of a route stands in the query."""
    return isinstance(param.field_info, params.Query)


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


def get_answers(request: Request) -> Answers:
    """The answers of studies, kept until something happens."""
    answers: Answers = request.app.state.answers
    return answers


def get_hub(request: Request) -> Hub:
    """Who listens to events."""
    hub: Hub = request.app.state.hub
    return hub


def get_feed(request: Request) -> RowFeed:
    """What changed of the rows that workers have copies of."""
    feed: RowFeed = request.app.state.feed
    return feed


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
AnswersDep = Annotated[Answers, Depends(get_answers)]
FeedDep = Annotated[RowFeed, Depends(get_feed)]
HubDep = Annotated[Hub, Depends(get_hub)]
Reader = Annotated[User, Depends(current_user)]
Submitter = Annotated[User, Depends(submitter)]
Administrator = Annotated[User, Depends(administrator)]
