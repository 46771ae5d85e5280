import errno
import pickle
import sqlite3

import pytest
from pydantic import BaseModel, ValidationError

from mixers.errors import SpecError, UnknownMixerError
from search import errors
from search.cli.failures import EXIT_CODES, describe


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.RunFailedError("a"), 1),
        (errors.InputError("a"), 2),
        (errors.StoreError("a"), 3),
        (errors.NothingThereError("a"), 4),
        (errors.InterruptedRunError("a"), 130),
        (UnknownMixerError("a"), 2),
        (SpecError("a"), 2),
        (OSError(errno.ENOSPC, "No space left on device", "search.db"), 3),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "x.txt"), 2),
        (sqlite3.OperationalError("database or disk is full"), 3),
        (sqlite3.DatabaseError("file is not a database"), 3),
        (KeyboardInterrupt(), 130),
        (RuntimeError("a bug"), 70),
    ],
)
def test__describe__any_error__documented_code(error: BaseException, code: int) -> None:
    line, found = describe(error)
    assert found == code
    assert found in EXIT_CODES
    assert line
    assert "\n" not in line


def test__describe__way_out_of_a_command_line__behind_the_message_that_is_right_everywhere() -> (
    None
):
    error = errors.InputError("a is taken; choose another", command="--name NEW")
    for same in (error, pickle.loads(pickle.dumps(error))):
        assert describe(same) == ("a is taken; choose another (--name NEW)", 2)
        assert str(same) == "a is taken; choose another"


def test__describe__several_lines__joined_to_one() -> None:
    line, _ = describe(SpecError("blocks.0: unknown key\n  blocks.1: missing"))
    assert line == "blocks.0: unknown key; blocks.1: missing"


def test__describe__file_error__names_the_file() -> None:
    line, _ = describe(FileNotFoundError(errno.ENOENT, "No such file or directory", "x.txt"))
    assert line == "x.txt: No such file or directory"


def test__describe__validation_error__path_of_the_field() -> None:
    class Model(BaseModel):
        size: int

    with pytest.raises(ValidationError) as caught:
        Model.model_validate({"size": "many"})
    line, code = describe(caught.value)
    assert code == 2
    assert line.startswith("size: ")


def test__describe__driver_error__without_the_statement() -> None:
    from sqlalchemy.exc import OperationalError

    cause = sqlite3.OperationalError("disk I/O error")
    line, code = describe(OperationalError("INSERT INTO secrets", {}, cause))
    assert code == 3
    assert "disk I/O error" in line
    assert "INSERT" not in line
