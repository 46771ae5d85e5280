import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from own_study import own_study

from mixers.notation import parse_architecture
from search.errors import InputError
from search.spec.baselines import baselines, cheap_mixer, reference_mixer
from search.spec.space import Space, layer_labels

KINDS = ["attention", "attention(rotary=true)", "sepconv", "bproj", "average", "identity"]
spaces = st.lists(
    st.lists(st.sampled_from(KINDS), min_size=1, max_size=4, unique=True), min_size=1, max_size=4
).map(lambda layers: Space(tuple(dict.fromkeys(layer) for layer in layers)))


@given(space=spaces, data=st.data())
def test__space__any_architecture__goes_both_ways(space, data):
    labels = tuple(data.draw(st.sampled_from(list(layer))) for layer in space.layers)
    assert labels in space
    params = space.params(labels)
    assert list(params) == [f"layer_{i}" for i in range(len(space.layers))]
    assert space.labels(params) == labels
    assert space.at(space.index(labels)) == labels


@given(space=spaces)
def test__space__enumerated__has_every_architecture_once(space):
    everything = list(space)
    assert len(everything) == len(set(everything)) == space.size
    assert [space.index(labels) for labels in everything] == list(range(space.size))


@given(space=spaces, data=st.data())
def test__untrained__some_trained__draws_one_of_the_others_or_none(space, data):
    everything = list(space)
    trained = data.draw(st.sets(st.sampled_from(everything)))
    outside = ("lightconv",) * len(space.layers)
    drawn = space.untrained({*trained, outside}, data.draw(st.integers(0, 2**31)))
    assert (drawn is None) == (len(trained) == space.size)
    if drawn is not None:
        assert drawn in set(everything) - trained


def test__untrained__many_seeds__is_uniform():
    space = Space(({"a": None, "b": None, "c": None},) * 2)
    trained = {("a", "a"), ("b", "c"), ("c", "c")}
    seeds = random.Random(0)
    drawn = Counter(space.untrained(trained, seeds.randrange(2**31)) for _ in range(3000))
    assert set(drawn) == set(space) - trained
    assert all(abs(n - 500) < 5 * 500**0.5 for n in drawn.values())


def test__space__outside__is_no_point_and_has_no_parameters():
    space = Space.of(own_study(n_layers=2))
    for labels in (("sepconv",), ("sepconv", "average"), ("sepconv",) * 3, ["sepconv"] * 2, None):
        assert labels not in space
    assert space.params(("sepconv", "average")) is None
    with pytest.raises(IndexError):
        space.at(space.size)


def test__space__of_a_study__has_own_choices_where_a_layer_names_them():
    from search.spec.study import StudySpec

    document = own_study(n_layers=3).model_dump()
    document["space"]["layers"] = [{"layer": 1, "choices": ["identity", "sepconv(n_filters=8)"]}]
    space = Space.of(StudySpec.model_validate(document))
    assert [list(layer) for layer in space.layers] == [
        ["attention", "sepconv", "bproj"],
        ["identity", "sepconv"],
        ["attention", "sepconv", "bproj"],
    ]
    assert space.size == 18
    assert list(space.choices) == ["attention", "sepconv", "bproj", "identity"]


def test__space__labels__are_those_of_stored_rows():
    from mixers.notation import format_layer

    study = own_study(choices=["attention(n_heads=2, rotary=true)", "sepconv(kernel_size=9)"])
    space = Space.of(study)
    labels = ("attention(rotary=true)",) * 3 + ("sepconv(kernel_size=9)",)
    spec = study.encoder_spec(space.mixers(labels))
    sizes = {"d_model": spec.d_model, "max_seq_len": spec.max_seq_len}
    assert tuple(format_layer(block.mixer, **sizes) for block in spec.blocks) == labels
    assert (
        layer_labels(parse_architecture("attention(rotary=true)*3, sepconv(kernel_size=9)"), study)
        == labels
    )


def test__baselines__default_choices__come_in_the_documented_order():
    choices = ["attention(rotary=true)", "sepconv", "bproj", "average", "hardmax_shift"]
    found = baselines(own_study(choices=choices))
    a, s = "attention(rotary=true)", "sepconv"
    assert [(b.role, b.labels) for b in found] == [
        ("reference", (a,) * 4),
        ("cheap", (s,) * 4),
        ("first_half_cheap", (s, s, a, a)),
        ("last_half_cheap", (a, a, s, s)),
        ("cheap_short", (s, s)),
        ("reference_short", (a, a)),
        ("uniform:bproj", ("bproj",) * 4),
        ("uniform:average", ("average",) * 4),
        ("uniform:hardmax_shift", ("hardmax_shift",) * 4),
        ("reference_learned_positions", ("attention",) * 4),
    ]


def test__baselines__odd_or_single_layers__have_no_empty_or_double_stack():
    for n_layers in (1, 2, 3, 5):
        found = baselines(own_study(n_layers=n_layers))
        stacks = [b.labels for b in found]
        assert len(set(stacks)) == len(stacks)
        assert all(stacks)
        assert {len(stack) for stack in stacks} <= {n_layers, n_layers // 2}


def test__baselines__without_the_default_mixers__take_what_the_space_has():
    study = own_study(choices=["bproj", "average"])
    assert reference_mixer(study).kind == "attention"
    assert reference_mixer(study).rotary is True
    assert cheap_mixer(study).kind == "bproj"
    named = own_study(choices=["sepconv(kernel_size=3)", "sepconv", "attention"])
    assert cheap_mixer(named).kernel_size == 31
    first = own_study(choices=["sepconv(kernel_size=3)", "sepconv(kernel_size=5)", "attention"])
    assert cheap_mixer(first).kernel_size == 3


def test__baselines__named_choice_that_is_none__is_refused():
    from search.spec.study_file import study_from

    document = own_study().model_dump() | {"baselines": {"cheap": "lightconv"}}
    with pytest.raises(InputError, match=r"baselines\.cheap: 'lightconv' is no choice"):
        study_from(document)
