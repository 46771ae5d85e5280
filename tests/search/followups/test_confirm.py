import dataclasses

import pytest
from simulated import ATTENTION, row

from search.errors import InputError, NothingThereError
from search.followups.confirm import derive, labels_at, scales_of, select, spread, steps_of
from search.spec.study_file import study_from

A, S, B, M = ATTENTION, "sepconv", "bproj", "average"


def study(**document):
    return study_from({"training": {"steps": 600}, **document})


def explored(losses, **fields):
    """First trainings of the search, by stack."""
    return [
        dataclasses.replace(row(n, stack, loss), mixers=stack, **fields)
        for n, (stack, loss) in enumerate(losses.items())
    ]


LOSSES = {
    (A,) * 4: 3.0,
    (S,) * 4: 2.9,
    (S, S, A, A): 2.8,
    (A, A, S, S): 3.1,
    (S, S): 2.95,
    **{(B, B, B, mixer): 3.2 + 0.1 * n for n, mixer in enumerate((A, S, B, M))},
    **{(M, M, M, mixer): 4.0 + 0.1 * n for n, mixer in enumerate((A, S, B, M))},
}


@pytest.mark.parametrize(
    ("text", "steps"), [("x4", 2400), ("x1.5", 900), ("2400", 2400), ("601", 601)]
)
def test__steps_of__factor_or_number__is_a_longer_training(text, steps):
    assert steps_of(text, 600) == steps


@pytest.mark.parametrize("text", ["x1", "600", "0", "x", "fast", "xnan", "xinf", "1e3", "x1e30"])
def test__steps_of__what_is_no_longer_training__is_refused_in_one_line(text):
    with pytest.raises(InputError) as caught:
        steps_of(text, 600)
    assert "--steps" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("steps", "d_model", "expected"),
    [
        (None, None, ["steps-x1 600 64 b", "steps-x2 1200 64 n", "steps-x4 2400 64 b"]),
        (1200, None, ["steps-x1 600 64 b", "steps-x2 1200 64 b"]),
        (1500, None, ["steps-x1 600 64 b", "steps-x2 1200 64 n", "steps-1500 1500 64 b"]),
        (None, 128, ["steps-x1 600 64 b", "d_model-128 600 128 b"]),
        (
            1200,
            32,
            ["steps-x1 600 64 b", "steps-x2 1200 64 b", "d_model-32 600 32 b"],
        ),
    ],
)
def test__scales_of__wish__is_own_scale_doublings_and_the_wish(steps, d_model, expected):
    found = scales_of(study(), steps, d_model)
    assert [
        f"{s.purpose} {s.steps} {s.d_model} {'b' if s.is_broad else 'n'}" for s in found
    ] == expected


def test__scales_of__own_width__is_refused():
    with pytest.raises(InputError, match="own width"):
        scales_of(study(), None, 64)


def test__select__a_study__takes_finalists_and_the_ends_of_the_ranking():
    found = select(study(), explored(LOSSES))
    assert found.roles == {
        "pick": (S, S, A, A),
        "reference": (A,) * 4,
        "shorter": (S, S),
        "rival": (S,) * 4,
    }
    assert len(found.spread) == 4
    assert found.spread[0] == (A, A, S, S)
    assert found.spread[-1] == (M, M, M, M)
    assert not set(found.spread) & set(found.roles.values())


def test__select__what_the_budget_left_out__is_added():
    found = select(study(), explored({(S, S, A, A): 2.8}))
    assert found.roles["reference"] == (A,) * 4
    assert found.roles["shorter"] == (S, S)
    assert found.spread == ()


def test__select__attention_is_the_pick__it_is_the_reference_too():
    found = select(study(), explored(LOSSES | {(A,) * 4: 1.0}))
    assert found.roles["pick"] == found.roles["reference"] == (A,) * 4


def test__select__no_result__says_to_run_first():
    with pytest.raises(NothingThereError, match="run it first"):
        select(study(), [])


def test__spread__ranking__takes_equally_spaced_places_with_both_ends():
    ranked = [(str(n),) for n in range(10)]
    assert [int(label) for (label,) in spread(ranked, 4)] == [0, 3, 6, 9]
    assert spread(ranked, 99) == ranked
    assert spread(ranked, 0) == []


def test__derive__a_longer_training__changes_only_length_and_list():
    base = study(recipe="shared", encoder={"n_layers": 4, "d_ff": 100})
    [_, _, longest] = scales_of(base)
    derived = derive(base, longest, select(base, explored(LOSSES)), seeds=3)
    assert derived.study.space.architectures[:2] == (f"{A}*4", f"sepconv*2, {A}*2")
    assert len(derived.study.space.architectures) == 8
    assert derived.study.strategy.options == {"seeds": 3}
    assert derived.study.training == base.training.model_copy(update={"steps": 2400})
    for field in ("task", "encoder", "objectives", "metrics", "tolerance", "seed", "match"):
        assert getattr(derived.study, field) == getattr(base, field)
    assert derived.left_out == ()


def test__derive__narrow_scale__has_the_finalists_alone():
    base = study()
    [_, double, _] = scales_of(base)
    derived = derive(base, double, select(base, explored(LOSSES)), seeds=2)
    assert len(derived.study.space.architectures) == 4


def test__derive__another_width__keeps_the_ratio_and_lets_heads_follow():
    base = study(encoder={"d_model": 64, "d_ff": 256})
    [_, wide] = scales_of(base, None, 128)
    derived = derive(base, wide, select(base, explored(LOSSES)), seeds=1)
    assert (derived.study.encoder.d_model, derived.study.encoder.d_ff) == (128, 512)
    attention = next(c for c in derived.study.space.choices if c.kind == "attention")
    assert 128 % attention.n_heads == 0
    assert labels_at((A, S), derived.study) == (A, S)


def test__derive__stack_that_does_not_fit__is_named_and_left_out():
    odd = "attention(n_heads=8)"
    base = study()
    losses = LOSSES | {(odd, S, S, S): 4.9}
    [_, narrow] = scales_of(base, None, 4 * 13)
    with pytest.raises(InputError, match=r"cannot be built.* a multiple of 16"):
        derive(base, narrow, select(base, explored(losses)), seeds=1)
    [_, narrow] = scales_of(base, None, 32 + 16)
    losses = LOSSES | {("attention(n_heads=32)", S, S, S): 4.9}
    derived = derive(base, narrow, select(base, explored(losses)), seeds=1)
    [(notation, reason)] = derived.left_out
    assert notation == "attention(n_heads=32), sepconv*3"
    assert "n_heads" in reason


def test__derive__study_with_limits_sweep_and_other_baselines__is_still_a_plain_list():
    base = study(
        recipe="sweep",
        limits={"max_params": 1e7},
        space={"choices": [A, S, B, M]},
        baselines={"cheap": "average"},
        rungs=[100],
    )
    found = select(base, explored({(S, S, A, A): 2.8, (A,) * 4: 3.0}, params=9_000))
    assert found.roles["shorter"] == (M, M)
    derived = derive(base, scales_of(base)[0], found, seeds=1)
    assert not derived.study.limits.model_dump(exclude_none=True)
    assert derived.study.rungs == ()
    assert derived.study.recall is False
