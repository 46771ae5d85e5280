"""How options of `search run` become settings of the study."""

from pathlib import Path

import pytest
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

from search.cli.run import assemble
from search.tasks.mlm import MlmConfig


@pytest.fixture
def tokenizer(tmp_path: Path) -> str:
    """A folder with a tokenizer of 90 ids."""
    names = ["[PAD]", "[UNK]", "[MASK]", *(f"word{i}" for i in range(87))]
    words = models.WordLevel({name: i for i, name in enumerate(names)}, unk_token="[UNK]")
    PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(words),
        pad_token="[PAD]",
        unk_token="[UNK]",
        mask_token="[MASK]",
    ).save_pretrained(tmp_path / "own")
    return str(tmp_path / "own")


def test__tokenizer__given__sets_the_vocabulary_to_its_size(tokenizer: str) -> None:
    task = assemble(None, [], tokenizer=tokenizer).task
    assert isinstance(task, MlmConfig)
    assert (task.tokenizer, task.vocab_size) == (tokenizer, 90)


def test__tokenizer__given_with_a_size__keeps_that_size(tokenizer: str) -> None:
    task = assemble(None, ["task.vocab_size=128"], tokenizer=tokenizer).task
    assert isinstance(task, MlmConfig)
    assert task.vocab_size == 128


@pytest.mark.parametrize("name", ["\u00fc \U0001f600 'q\".txt", "a\\b: [c] #d.txt", "-dash.txt"])
def test__data__unusual_name__arrives_unchanged(name: str) -> None:
    task = assemble(None, [], data=name).task
    assert isinstance(task, MlmConfig)
    assert task.data.source == name
