"""The route of a whole space against every one of its stacks, followed one by one by matrices."""

import json

import pytest
from own_study import own_study

from mixers.builtin.sepconv import SeparableConvolution
from mixers.notation import format_architecture, parse_architecture
from mixers.receptive import route
from search.cli.output import jsonable
from search.planning import space_route as module
from search.planning.plan_words import space_route_words
from search.planning.space_route import space_route
from search.spec.space import Space
from search.spec.study import StudySpec

WINDOWS = ("sepconv(kernel_size=3)", "sepconv(kernel_size=4)", "identity")
PATTERNS = (
    "sparse_attention(pattern=random, width=1, seed=1)",
    "sparse_attention(pattern=random, width=1, seed=2)",
    "sparse_attention(pattern=strided, width=3, combination=first)",
    "attention",
)


def study(choices, *, n_layers=3, seq_len=12, encoder=None, **changes):
    base = own_study(n_layers=n_layers, choices=choices).model_dump()
    base["task"] |= {"vocab_size": 20, "seq_len": seq_len}
    base["encoder"] |= {"d_model": 16, "d_ff": 32} | (encoder or {})
    return StudySpec.model_validate(base | changes)


def followed(spec, stacks):
    """Each stack's own route, in the order of the stacks."""
    return [route(spec.encoder_spec(stack), repeated=False) for stack in stacks]


def expected(spec, stacks):
    """What the routes of single stacks come to."""
    every = followed(spec, stacks)
    depths = [found.full_after for found in every if found.full_after is not None]
    short = [found for found in every if found.full_after is None]
    least = max(short, key=lambda found: len(found.unseen()), default=None)
    return {
        "architectures": len(every),
        "full": len(depths),
        "full_after": (min(depths), max(depths)) if depths else None,
        "n_unseen": least and len(least.unseen()),
    }


def counted(spec):
    found = space_route(spec)
    assert found.problem is None
    return {
        "architectures": found.architectures,
        "full": found.full,
        "full_after": found.full_after,
        "n_unseen": found.route and found.route["n_unseen"],
    }


def stacks_of(spec):
    space = Space.of(spec)
    return [space.mixers(labels) for labels in space]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("seq_len", [1, 5, 12])
@pytest.mark.parametrize("choices", [WINDOWS, PATTERNS], ids=["windows", "patterns"])
def test__space_route__small_space__is_what_its_stacks_come_to(choices, seq_len, causal):
    spec = study(choices, seq_len=seq_len, encoder={"causal": causal})
    assert counted(spec) == expected(spec, stacks_of(spec))


def test__space_route__least_connected__is_named_and_is_one_of_the_space():
    spec = study([*PATTERNS, *WINDOWS[:2]])
    found = space_route(spec)
    (stack,) = [
        s for s in stacks_of(spec) if format_architecture(s, **spec.mixer_sizes) == found.least
    ]
    assert len(followed(spec, [stack])[0].unseen()) == found.route["n_unseen"]


def test__space_route__limits_and_layers_of_their_own__leave_out_what_the_study_leaves_out():
    layers = [{"layer": 1, "choices": [{"kind": "identity"}, {"kind": "average"}]}]
    space = {"choices": [parse_architecture(text)[0].model_dump() for text in WINDOWS]}
    own = study(WINDOWS, space=space | {"layers": layers})
    assert counted(own) == expected(own, stacks_of(own))
    for bound in (4000, 4800, 5640, 6480):
        spec = study([*WINDOWS, "average"], limits={"max_params": bound})
        assert 1 <= len(stacks_of(spec)) < 4**3
        assert counted(spec) == expected(spec, stacks_of(spec))


def test__space_route__list__counts_the_listed_whatever_their_depth():
    listed = ["sepconv(kernel_size=5)*2", "sepconv(kernel_size=5)*6", "attention, identity"]
    space = {"architectures": listed}
    spec = study(WINDOWS, space=space, strategy={"name": "listed"})
    assert counted(spec) == expected(spec, [parse_architecture(text) for text in listed])
    assert space_route(spec).least == listed[0]


def test__space_route__vast_space__is_counted_without_being_listed():
    # Only stacks of identity alone keep two tokens apart.
    spec = study(["identity", "attention"], n_layers=300)
    found = space_route(spec)
    assert (found.architectures, found.full) == (2**300, 2**300 - 1)
    assert (found.full_after, found.least) == ((1, 300), "identity*300")
    words = space_route_words(found, 12)
    assert "in 2.04e+90 of 2.04e+90 architectures, after 1 to 300 layers" in words


def test__space_route__too_much_to_follow__says_so(monkeypatch):
    monkeypatch.setattr(module, "MOST_STEPS", 10)
    spec = study(PATTERNS)
    found = space_route(spec)
    assert (found.architectures, found.full_after) == (64, None)
    assert "differ too much to be counted" in space_route_words(found, 12)
    monkeypatch.setattr(module, "MOST_STEPS", 2000)
    monkeypatch.setattr(module, "MOST_BEGINNINGS", 3)
    assert "differ too much to be counted" in space_route(spec).problem


def test__space_route__mixer_that_cannot_say__stops_no_plan(monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("no idea")

    monkeypatch.setattr(SeparableConvolution, "connections", broken)
    words = space_route_words(space_route(study(["sepconv(kernel_size=7)", "attention"])), 12)
    assert words == (
        "route: unknown, a mixer could not say what it sees: RuntimeError: no idea; "
        "see 'search mixers route STACK'"
    )


@pytest.mark.parametrize(
    ("choices", "options", "words"),
    [
        (["attention"], {}, "every token sees every other in 1 of 1 architectures, after 1 layer"),
        (
            ["attention", "average"],
            {},
            "every token sees every other in all 8 architectures, after 1 layer",
        ),
        (
            ["attention", "identity"],
            {"encoder": {"causal": True}},
            "every token sees all before it in 7 of 8 architectures, after 1 to 3 layers; in "
            "identity*3 85% of the pairs of tokens never see each other, the nearest of them 1 "
            "apart",
        ),
        (
            ["identity"],
            {"seq_len": 2},
            "every token sees every other in none of 1 architectures; in identity*3 50% of the "
            "pairs of tokens never see each other, the nearest of them 1 apart",
        ),
    ],
)
def test__space_route_words__name_counts_layers_and_the_least_connected(choices, options, words):
    spec = study(choices, **options)
    assert space_route_words(space_route(spec), spec.sizes.max_seq_len) == f"route: {words}"


def test__space_route_words__long_input__says_how_much_was_looked_at():
    spec = study(["attention", "sepconv(kernel_size=3)"], seq_len=600)
    words = space_route_words(space_route(spec), 600)
    assert words.startswith("route of the first 512 tokens: every token sees every other in 7 of 8")


def test__space_route__as_json__is_plain():
    document = jsonable(space_route(study(WINDOWS)))
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert document["route"]["n_layers"] == 3
