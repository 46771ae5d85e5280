"""Settings of the machine, from the environment (prefix ``SEARCH_``); none belong to a study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from search.data.cache import default_cache_dir

Seconds = Annotated[float, Field(gt=0.0)]


class Settings(BaseSettings):
    """What may be set from outside; the text under each field describes it."""

    model_config = SettingsConfigDict(
        env_prefix="SEARCH_", extra="ignore", frozen=True, use_attribute_docstrings=True
    )

    cache_dir: Path = Field(default_factory=default_cache_dir)
    """Prepared data and tokenizers; safe to delete."""
    log_dir: Path | None = None
    """Output of training processes; by default a folder `logs` in the cache."""
    files_dir: Path | None = None
    """Checkpoints and results in waiting; by default beside an SQLite file, else in the cache.
    Workers on several machines share checkpoints through a folder that all of them see."""
    checkpoint_s: Seconds = 60.0
    """Seconds of training between two checkpoints; so much is done again after a crash."""
    hang_s: Seconds = 900.0
    """A training from which nothing was heard for so long is ended as hung."""
    poll_s: Seconds = 2.0
    """Seconds between two looks of an idle worker for work."""
    lease_s: Seconds = 90.0
    """A trial whose worker gave no sign of life for so long is handed to another."""
    beat_s: Seconds = 15.0
    """Seconds between a worker's signs of life; a quarter of the lease at most."""
    grace_s: Seconds = 10.0
    """How long a training may take to reach its next step boundary when it is to stop."""
    threads: Annotated[int, Field(ge=1)] | None = None
    """Threads of a training process; by default the machine's cores shared among the slots."""
    compile: bool = False
    """Whether the steps of a training are compiled (`torch.compile`; needs a C++ compiler, or
    Triton on a GPU). It starts later, and repeats up to rounding, no more to the last bit."""
    memory_limit_bytes: Annotated[int, Field(gt=0)] | None = None
    """Data memory a training process may use; unlimited by default."""

    @property
    def logs(self) -> Path:
        """The folder for the output of training processes."""
        return self.log_dir or self.cache_dir / "logs"


def settings() -> Settings:
    """Reads the settings.

    Raises:
        InputError: A variable has a value that makes no sense.
    """
    from pydantic import ValidationError

    from search.errors import InputError

    try:
        return Settings()
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = "SEARCH_" + "_".join(str(part) for part in first["loc"]).upper()
        raise InputError(f"{name}: {first['msg']} (got {first['input']!r:.60})") from None
