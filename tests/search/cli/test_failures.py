import errno
import pickle
import sqlite3
from types import ModuleType

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


PLUGIN = """
from faulty_mixers import Honest, zero_padding

class Fails(Honest):
    def forward(self, x, mask=None):
        return zero_padding(x[0], mask)  # fails in code that is not its own
"""


def test__describe__error_out_of_an_installed_mixer__whose_what_and_where(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import torch

    from mixers.registry import Entry, mixer_registry

    module = ModuleType("acme_of_a_test.parts")
    exec(compile(PLUGIN, "/somewhere/parts.py", "exec"), vars(module))
    entry = Entry("acme.fails", "acme", "1.2", "acme_of_a_test.parts:Fails", module.Fails, None)
    monkeypatch.setattr(mixer_registry, "found", (*mixer_registry.discovered(), entry))
    mixer = module.Fails(module.Fails.config_type(), d_model=4, max_seq_len=4)
    with pytest.raises(RuntimeError) as caught:
        mixer(torch.zeros(2, 3, 4), torch.ones(2, 5, dtype=torch.bool))
    line, code = describe(caught.value)
    assert code == 2
    assert line.startswith("a mixer of package acme 1.2 failed: RuntimeError: ")
    assert "raised in forward at parts.py, line 6; 'search mixers check'" in line
    monkeypatch.setattr(mixer_registry, "found", (entry,)[:0])
    assert describe(caught.value)[1] == 70
