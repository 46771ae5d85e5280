"""A causal study refuses a mixer that sees later tokens before it spends anything."""

from typing import ClassVar, Literal

import pytest
from faulty_mixers import Honest, HonestConfig, LooksAhead
from own_study import store_url

import search
from mixers import Encoder
from mixers.registry import mixer_registry
from mixers.spec import EncoderSpec
from search.api import study_of
from search.engine.looking_ahead import refuse_looking_ahead
from search.errors import InputError
from search.training.proof import ProofError, mixer_proof


class PeekConfig(HonestConfig):
    kind: Literal["local.peek"] = "local.peek"


class Peek(LooksAhead):
    """Claims to be causal, and looks one token ahead."""

    config_type: ClassVar = PeekConfig


class DeafPeek(Peek):
    """The same, and does not even hear that it is to be causal."""

    def __init__(self, config, *, d_model, max_seq_len, causal=False):
        super().__init__(config, d_model=d_model, max_seq_len=max_seq_len)


class HonestPeek(Honest):
    """What a repaired version under the same name is."""

    config_type: ClassVar = PeekConfig


@pytest.fixture(params=[Peek, DeafPeek])
def peek(request):
    mixer_registry.register(request.param)
    yield
    mixer_registry.unregister("local.peek")


def causal_study(*, causal=True):
    choices = ["attention", "sepconv", "local.peek"]
    return study_of({"task": "mqar", "encoder": {"causal": causal}, "space": {"choices": choices}})


@pytest.mark.usefixtures("peek")
def test__C08__causal_study_with_a_mixer_that_looks_ahead__is_refused_and_leaves_no_trace(tmp_path):
    with pytest.raises(InputError, match=r"mixer local\.peek cannot stand in a causal study: outp"):
        search.run(causal_study(), "3", store_url(tmp_path), in_process=True)
    with search.open(store_url(tmp_path)) as store:
        assert store.studies() == []
    mixer_registry.register(HonestPeek)
    refuse_looking_ahead(causal_study())


@pytest.mark.usefixtures("peek")
def test__C08__study_of_both_sides__takes_the_same_mixer():
    refuse_looking_ahead(causal_study(causal=False))


@pytest.mark.usefixtures("peek")
def test__C08__trained_network_that_looks_ahead__fails_its_proof():
    spec = EncoderSpec.of(
        "attention, local.peek", causal=True, vocab_size=9, d_model=16, max_seq_len=8, d_ff=8
    )
    with pytest.raises(ProofError, match=r"layer 1 .* causal, but token 1 moved token 0 before it"):
        mixer_proof(Encoder(spec), spec)
