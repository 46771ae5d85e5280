import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from texts import words

from search.data.tokenizer import (
    SPECIAL_TOKENS,
    load_tokenizer,
    tokenizer_hash,
    train_wordpiece,
    vocabulary_size,
)
from search.errors import InputError

TEXT = words(3_000)

TRAIN = """
import sys
from texts import words
from search.data.tokenizer import tokenizer_hash, train_wordpiece
print(tokenizer_hash(train_wordpiece([words(3_000)], 120)))
"""


def test__train_wordpiece__text__special_tokens_first_and_size_kept() -> None:
    fast = train_wordpiece([TEXT], 120)
    assert len(fast) == 120
    assert fast.convert_ids_to_tokens(list(range(5))) == list(SPECIAL_TOKENS.values())
    ids = fast.encode("Badoki LUME.", add_special_tokens=False)
    assert fast.decode(ids) == "badoki lume."


def test__train_wordpiece__other_process__same_ids() -> None:
    # The trainer numbers pieces by a hash order that differs between processes.
    support = Path(__file__).parents[2] / "support"
    hashes = {
        subprocess.run(
            [sys.executable, "-c", TRAIN],
            env={"PYTHONPATH": f"{support}:{Path.cwd()}", "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for _ in range(2)
    }
    assert hashes == {tokenizer_hash(train_wordpiece([TEXT], 120))}


def test__train_wordpiece__many_characters__size_is_never_exceeded() -> None:
    text = " ".join(chr(0x4E00 + i) for i in range(2_000)) + " " + TEXT
    assert len(train_wordpiece([text], 120)) <= 120


@pytest.mark.parametrize("form", ["folder", "file", "bare folder"])
def test__load_tokenizer__each_form__same_ids_and_special_tokens(tmp_path: Path, form: str) -> None:
    fast = train_wordpiece([TEXT], 120)
    fast.save_pretrained(tmp_path)
    source = tmp_path
    if form == "file":
        source = tmp_path / "tokenizer.json"
    elif form == "bare folder":
        (tmp_path / "tokenizer_config.json").unlink()
    loaded = load_tokenizer(str(source))
    assert tokenizer_hash(loaded) == tokenizer_hash(fast)
    assert loaded.mask_token_id == 4
    assert vocabulary_size(str(source)) == 120


OFFLINE = """
from search.data.tokenizer import load_tokenizer
from search.errors import InputError
try:
    load_tokenizer("acme/tokenizer")
except InputError as error:
    print(error)
"""


def test__load_tokenizer__no_network__one_line_that_names_the_local_way() -> None:
    # Nothing listens on port 9 of this machine: a network that refuses at once.
    env = {**os.environ, "HF_ENDPOINT": "http://127.0.0.1:9", "HF_HUB_OFFLINE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE],
        env=env,
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    assert done.stdout.count("\n") == 1
    assert "acme/tokenizer" in done.stdout
    assert "tokenizer.json" in done.stdout
    assert done.stderr == ""


def unreadable(folder: Path, kind: str) -> Path:
    """Makes a tokenizer that cannot be used; returns its path."""
    path = folder / "tokenizer.json"
    if kind == "empty folder":
        return folder
    if kind == "no mask token":
        train_wordpiece([TEXT], 120).save_pretrained(folder)
        content = json.loads(path.read_text())
        content["model"]["vocab"]["[other]"] = content["model"]["vocab"].pop("[MASK]")
        content["added_tokens"] = [t for t in content["added_tokens"] if t["content"] != "[MASK]"]
        path.write_text(json.dumps(content))
        return path
    path.write_text({"truncated": '{"version": "1.0", "mod', "not json": "hello"}[kind])
    return path


@pytest.mark.parametrize("kind", ["empty folder", "truncated", "not json", "no mask token"])
def test__load_tokenizer__unreadable__one_line(tmp_path: Path, kind: str) -> None:
    path = unreadable(tmp_path, kind)
    with pytest.raises(InputError) as caught:
        load_tokenizer(str(path))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
