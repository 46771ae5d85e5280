import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from own_study import own_study

from mixers.cost import count_flops
from mixers.model import Encoder
from search.errors import InputError
from search.spec.baselines import baselines, reference_mixer
from search.spec.matching import WIDTH_STEP
from search.spec.space import Space
from search.spec.study import StudySpec
from search.spec.study_file import study_from

CHOICES = ["attention", "sepconv", "bproj", "average", "hardmax_shift"]


def document(match, **encoder):
    base = own_study(n_layers=4, choices=CHOICES).model_dump()
    base["task"] |= {"vocab_size": 40, "seq_len": 16}
    base["encoder"] |= {"d_model": 32, "d_ff": 100} | encoder
    return base | {"match": match}


def built(encoder):
    """Parameters of the modules as they are trained, counted one by one."""
    return sum(parameter.numel() for parameter in Encoder(encoder).parameters())


def cost_of(match, encoder):
    return built(encoder) if match == "params" else count_flops(encoder)


def d_ff(encoder):
    [width] = {block.d_ff for block in encoder.blocks}
    return width


@pytest.mark.parametrize("norm", ["pre", "none"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("match", ["params", "flops"])
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test__match__any_stack__no_other_width_is_nearer_to_the_reference(match, norm, bias, data):
    study = StudySpec.model_validate(document(match, norm=norm, bias=bias))
    space = Space.of(study)
    depth = data.draw(st.sampled_from([2, 4]))
    labels = data.draw(st.lists(st.sampled_from(list(space.choices)), min_size=depth, max_size=4))
    mixers = [space.choices[label] for label in labels[:depth]]
    reference = study.encoder_spec([reference_mixer(study)] * 4)
    encoder = study.encoder_spec(mixers)
    target, width = cost_of(match, reference), d_ff(encoder)
    assert d_ff(reference) == 100
    assert (width - 100) % WIDTH_STEP == 0
    error = abs(cost_of(match, encoder) - target)
    for other in (max(1, width - WIDTH_STEP), width + WIDTH_STEP):
        neighbour = study.encoder.stack(mixers, study.sizes, other)
        assert error <= abs(cost_of(match, neighbour) - target)


def test__match__params__ids_differ_from_the_unmatched_and_costs_agree_within_half_a_step():
    matched = StudySpec.model_validate(document("params"))
    plain = StudySpec.model_validate(document("none"))
    for baseline in baselines(matched):
        ours, theirs = matched.encoder_spec(baseline.mixers), plain.encoder_spec(baseline.mixers)
        assert (ours.arch_id == theirs.arch_id) == (d_ff(ours) == 100)
    spread = {built(matched.encoder_spec(b.mixers)) for b in baselines(matched)}
    assert len(spread) > 1
    step = 4 * WIDTH_STEP * (2 * 32 + 1)
    assert max(spread) - min(spread) <= step


def test__match__no_width_can_do_it__is_refused_with_the_stack():
    base = document("params", d_ff=8) | {"baselines": {"reference": "average"}}
    with pytest.raises(
        InputError, match=r"match: attention.*\*4 has more params .* raise encoder\.d_ff"
    ):
        study_from(base)


def test__match__without_feed_forward_layers__is_refused():
    with pytest.raises(InputError, match="match: there is no feed-forward layer"):
        study_from(document("flops", d_ff=0))
