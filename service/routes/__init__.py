"""The routes of the API, one noun per file."""

from fastapi import APIRouter


def api() -> APIRouter:
    """All routes under the version's prefix."""
    from service.routes import health

    router = APIRouter()
    for part in (health,):
        router.include_router(part.router)
    return router
