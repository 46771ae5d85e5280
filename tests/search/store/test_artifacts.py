import pytest
import store_factory

from search.errors import NothingThereError


def test__add_artifact__same_place_again__replaces_what_lay_there(store):
    store_factory.fill(store, "demo")
    trial = store.rows("demo")[0].id
    first = store.add_artifact(trial, "export", "exports/1/model.safetensors", size_bytes=3)
    other = store.add_artifact(trial, "log", "logs/1.txt")
    again = store.add_artifact(
        trial, "export", "exports/1/model.safetensors", sha256="0" * 64, size_bytes=5
    )
    assert len({first, other, again}) == 3
    found = store.trial(trial)["artifacts"]
    assert [(one["id"], one["kind"], one["uri"], one["size_bytes"]) for one in found] == [
        (other, "log", "logs/1.txt", None),
        (again, "export", "exports/1/model.safetensors", 5),
    ]


def test__add_artifact__no_such_trial__nothing_there(store):
    with pytest.raises(NothingThereError, match="no trial with id 77"):
        store.add_artifact(77, "log", "logs/1.txt")
