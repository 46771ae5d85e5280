"""Login of a browser: its token goes into a cookie that scripts cannot read."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from service.access import COOKIE, refuse_other_sites
from service.deps import AccessDep, Reader, SettingsDep
from service.problems import WITH_BODY, errors
from service.schemas import Login, Session
from service.users import User

router = APIRouter(prefix="/session", tags=["session"])
MAX_AGE_S = 30 * 86400


def session_of(user: User) -> Session:
    """What a browser is told of its user."""
    return Session(name=user.name, role=user.role, csrf=user.csrf if user.via == "cookie" else "")


@router.get("", summary="Who asks", responses=errors())
def show(user: Reader) -> Session:
    """Name and role of the token, and what a browser must send back with changes."""
    return session_of(user)


@router.post("", summary="Log in", responses=errors(*WITH_BODY))
def log_in(
    body: Login, request: Request, response: Response, access: AccessDep, settings: SettingsDep
) -> Session:
    """Checks a token and answers with the cookie that stands for it from now on."""
    refuse_other_sites(request)
    user = access.user_of(request, body.token, "cookie")
    access.record(user.name, "login", None)
    response.set_cookie(
        COOKIE,
        body.token,
        max_age=MAX_AGE_S,
        path="/",
        secure=settings.secure_cookies,
        httponly=True,
        samesite="lax",
    )
    return session_of(user)


@router.delete("", summary="Log out", status_code=204, responses=errors())
def log_out(user: Reader, response: Response, settings: SettingsDep) -> None:
    """Takes the cookie away; the token itself stays valid until it is revoked."""
    response.delete_cookie(
        COOKIE, path="/", secure=settings.secure_cookies, httponly=True, samesite="lax"
    )
