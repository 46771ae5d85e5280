from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from own_study import loss, own_study, store_url

import search
from mixers.cost import count_flops, count_parameters
from mixers.notation import parse_architecture
from search.errors import InputError
from search.rows import PHASES
from search.spec.limited_space import LimitedSpace, TooManySumsError
from search.spec.limits import limits_of
from search.spec.space import Space
from search.spec.study import StudySpec
from search.spec.study_file import study_from

CHOICES = ["attention", "sepconv", "bproj", "average"]


def document(limits, *, match="none", n_layers=3, **changes):
    base = own_study(n_layers=n_layers, choices=CHOICES).model_dump()
    base["task"] |= {"vocab_size": 50, "seq_len": 16}
    base["encoder"] |= {"d_model": 16, "d_ff": 64}
    return base | {"limits": limits, "match": match} | changes


def study(limits, **changes):
    return StudySpec.model_validate(document(limits, **changes))


@cache
def counted_of(encoder):
    return {"params": count_parameters(encoder), "flops": count_flops(encoder)}


def within(spec, labels):
    """The slow way: build the encoder and count."""
    counted = counted_of(spec.encoder_spec(Space.product(spec).mixers(labels)))
    return all(limit.excess(counted[limit.measure.name]) <= 0 for limit in limits_of(spec))


@settings(max_examples=25, deadline=None)
@given(
    params=st.none() | st.integers(7_500, 14_500),
    flops=st.none() | st.integers(170_000, 330_000),
    match=st.sampled_from(["none", "params", "flops"]),
)
def test__limited_space__any_limits__holds_exactly_what_counting_each_stack_keeps(
    params, flops, match
):
    limits = {"max_params": params, "max_flops": flops}
    try:
        spec = study({name: bound for name, bound in limits.items() if bound}, match=match)
    except ValueError:
        every = study({}, match=match)
        kept = [labels for labels in Space.of(every) if within(with_limits(every, limits), labels)]
        assert kept == []
        return
    space, product = Space.of(spec), list(Space.product(spec))
    expected = [labels for labels in product if within(spec, labels)]
    assert list(space) == expected
    assert space.size == len(expected)
    assert [space.index(labels) for labels in expected] == list(range(len(expected)))
    assert [labels for labels in product if labels in space] == expected


def with_limits(spec, limits):
    bounded = type(spec.limits).model_construct(**limits)
    return spec.model_copy(update={"limits": bounded})


def test__limited_space__draws_and_order__stay_within():
    spec = study({"max_params": 9000})
    space = Space.of(spec)
    everything = set(space)
    assert 3 < len(everything) < 64
    left = set(everything)
    trained = set()
    while (drawn := space.untrained(trained, len(trained))) is not None:
        left.remove(drawn)
        trained.add(drawn)
    assert not left
    assert space.first_untrained(set()) == space.at(0)
    assert space.first_untrained(everything) is None
    with pytest.raises(IndexError):
        space.at(space.size)
    assert ("average",) not in space
    assert "average" not in space


@pytest.mark.parametrize("most", [500, 30])
def test__nearest_untrained__proposal_over_the_limit__changes_the_fewest_layers(monkeypatch, most):
    monkeypatch.setattr("search.spec.space.MOST_COMPARED", most)
    spec = study({"max_params": 9000})
    space, product = Space.of(spec), Space.product(spec)
    over = next(labels for labels in product if labels not in space)

    def changes(labels):
        return sum(a != b for a, b in zip(labels, over, strict=True))

    trained: set = set()
    previous = 0
    while (found := space.nearest_untrained(over, trained, seed=len(trained))) is not None:
        assert found in space
        assert found not in trained
        if most > space.size:
            assert changes(found) >= previous
            previous = changes(found)
        trained.add(found)
    assert trained == set(space)


def test__space_of__no_limit_known_before__is_the_product_itself():
    spec = study({"max_loss": 0.001})
    assert not isinstance(Space.of(spec), LimitedSpace)
    assert Space.of(spec).size == 64


def test__limits__nothing_within__is_one_line_with_the_smallest():
    with pytest.raises(InputError) as caught:
        study_from(document({"max_params": 1000}))
    smallest = count_parameters(
        study({}).encoder_spec(Space.product(study({})).mixers(("average",) * 3))
    )
    [line] = str(caught.value).splitlines()
    assert line.startswith("limits: no architecture of the space is within max_params 1,000")
    assert f"the smallest has {smallest:,} parameters" in line


def test__limits__each_reachable_but_not_together__are_refused_too():
    with pytest.raises(InputError, match=r"within max_params .* and max_flops"):
        study_from(document({"max_params": 7_900, "max_flops": 180_000}))


def test__limited_space__forty_layers__are_counted_without_listing():
    spec = study({"max_params": 120_000}, n_layers=40)
    space = Space.of(spec)
    assert isinstance(space, LimitedSpace)
    assert 0 < space.size < 4**40
    labels = space.untrained(set(), 3)
    assert within(spec, labels)
    assert space.at(space.index(labels)) == labels


def test__limited_space__too_many_sums__is_refused_in_one_line(monkeypatch):
    monkeypatch.setattr("search.spec.limited_space.MOST_SUMS", 10)
    with pytest.raises(InputError, match="too many different sizes to count"):
        study_from(document({"max_params": 9001}))
    assert issubclass(TooManySumsError, ValueError)


def test__run__limit_on_parameters__trains_the_rest_and_the_baselines_and_ends_cleanly(tmp_path):
    spec = study({"max_params": 9000})
    small = set(Space.of(spec))
    with search.open(store_url(tmp_path), create=True) as store:
        outcome = search.run(spec, 200, store, objective=loss)
        rows = store.rows(outcome.study_id)
    assert (outcome.reason, outcome.exit_code) == ("space used up", 0)
    assert f"all {len(small)} architectures of the space within the limits" in outcome.message
    by_phase = {phase: {r.mixers for r in rows if r.phase == phase} for phase in PHASES}
    assert by_phase["search"] | (by_phase["baseline"] & small) == small
    assert by_phase["search"] <= small
    assert ("attention(n_heads=2)",) * 3 in by_phase["baseline"] - small
    assert all(row.params == counted_of(encoder_of(spec, row))["params"] for row in rows)


def encoder_of(spec, row):
    [*mixers] = [parse_architecture(label)[0] for label in row.mixers]
    return spec.encoder_spec(mixers)
