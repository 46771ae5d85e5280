import json
import math

import pytest

from mixers.measure import measure
from search.figures.influence import influence_figure, influence_grid, levels


def test__levels__shares__are_powers_of_ten_and_nothing_is_blank():
    cells = levels([[2.0, 0.2, 0.0], [2e-9, 0.0, 2e-3]])
    assert cells[0] == pytest.approx([0.0, -1.0, None])
    assert cells[1] == pytest.approx([None, None, -3.0])
    assert levels([[0.0]]) == [[None]]


def test__influence_figure__window__is_blank_beyond_its_reach():
    card = measure("sparse_attention", d_model=16, seq_len=20)
    document = json.loads(influence_figure(card.kind, card.influence, card.d_model).to_json())
    json.dumps(document, allow_nan=False)
    cells = document["data"][0]["z"]
    for output, row in enumerate(cells):
        for token, cell in enumerate(row):
            assert (cell is None) == (abs(output - token) > 8)
            assert cell is None or (math.isfinite(cell) and cell <= 0.0)
    assert document["layout"]["title"]["text"].startswith("sparse_attention")


def test__influence_grid__mixers__one_map_each_under_its_name():
    maps = {name: [[1.0, 0.1], [0.0, 1.0]] for name in ("a", "b", "c")}
    document = json.loads(influence_grid(maps, columns=2).to_json())
    assert len(document["data"]) == 3
    assert [note["text"] for note in document["layout"]["annotations"]] == ["a", "b", "c"]
    assert document["data"][2]["z"] == [[0.0, -1.0], [None, 0.0]]
