import json

import pytest
import torch
from probed import VOCABULARY, encoder_of, random_contexts

from search.figures.probe import probe_figure
from search.probe import examine


def test__probe_figure__window__shares_of_both_panels_are_the_readings():
    encoder = encoder_of("sepconv(kernel_size=3)", d_model=16, max_seq_len=12)
    found = examine(encoder, random_contexts(24, 12), VOCABULARY, seed=0, size="small")

    document = json.loads(probe_figure(found, title="S", subtitle="a convolution").to_json())

    curves = {trace["name"]: trace for trace in document["data"] if trace["type"] == "scatter"}
    bars = {trace["name"]: trace for trace in document["data"] if trace["type"] == "bar"}
    assert list(bars) == ["float64", "float32"]
    for place, stratum in enumerate(("one_edit", "half_edits", "transposition")):
        share = found.reading.readings[f"{stratum}.p_sep"]
        assert 0 < share < 1
        curve = curves[stratum.replace("_", " ")]
        assert sum(curve["y"]) == pytest.approx(share)
        assert bars["float64"]["y"][place] == pytest.approx(1 - share)


def test__probe_figure__nothing_told_apart__draws_no_curve():
    encoder = encoder_of("identity", d_model=16, max_seq_len=12)
    contexts = random_contexts(24, 12)
    found = examine(encoder, contexts, VOCABULARY, seed=0, size="small", dtypes=(torch.float64,))

    document = json.loads(probe_figure(found, title="0", subtitle="").to_json())

    assert [trace["y"] for trace in document["data"]] == [[], [], [], [1.0, 1.0, 1.0]]
