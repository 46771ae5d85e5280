import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from search.phases import Agenda, Ask, phase_sources, quotas
from search.phases.recipe import RecipePhase
from search.rows import TrialRow
from search.spec.study import StudySpec
from search.spec.sweep import Sweep, rate_of, sweep_rates
from search.strategies import make_strategy
from search.training.training_key import training_key

STUDY = StudySpec.model_validate(
    {
        "recipe": "sweep",
        "encoder": {"n_layers": 2},
        "space": {"choices": ["attention(rotary=true)", "sepconv", "average"]},
        "training": {"learning_rate": 0.01},
    }
)
A, S, M, P = "attention(rotary=true)", "sepconv", "average", "attention"


def row(number, labels, value, *, rate=None, seed_index=0, phase="recipe", state="completed"):
    return TrialRow(
        id=number,
        study="s",
        number=number,
        phase=phase,
        state=state,
        arch_id="/".join(labels),
        mixers=labels,
        n_layers=len(labels),
        seed=seed_index,
        seed_index=seed_index,
        recipe={} if rate is None else {"learning_rate": rate},
        selection={} if value is None else {"loss": value},
    )


def test__sweep__study__pure_stacks_at_three_rates_but_the_shared_one_is_a_baseline():
    sweep = Sweep.of(STUDY)
    assert sweep.rates == (0.005, 0.01, 0.02)
    runs = [(stack.labels[0], dict(recipe)) for stack, recipe in sweep.runs()]
    rates = [{"learning_rate": 0.005}, {"learning_rate": 0.02}]
    assert runs == [(mixer, recipe) for mixer in (A, S, P, M) for recipe in rates]
    assert Sweep.of(StudySpec()) is None


def test__recipe_phase__rows_of_the_sweep__are_not_trained_twice_and_end_it():
    phase = RecipePhase(Sweep.of(STUDY))
    rows, asked = [row(0, (A, A), 3.0, phase="baseline")], []
    while (choice := phase.choose(rows, Ask(len(rows)))) is not None:
        assert phase.is_open(rows)
        asked.append((choice.labels[0], choice.recipe["learning_rate"]))
        rows.append(row(len(rows), choice.labels, 3.0, rate=choice.recipe["learning_rate"]))
    assert not phase.is_open(rows)
    assert len(set(asked)) == len(asked) == 8
    first = phase.choose([], Ask(0))
    second = phase.choose([], Ask(0, refused=frozenset({first.key})))
    assert (second.labels, dict(second.recipe)) == ((A, A), {"learning_rate": 0.02})


def swept(best):
    """Rows of a finished sweep in which each mixer's stack is best at the given rate."""
    sweep, rows = Sweep.of(STUDY), []
    for stack in sweep.stacks:
        for rate in sweep.rates:
            value = 3.0 + abs(sweep.rates.index(rate) - sweep.rates.index(best[stack.labels[0]]))
            rows.append(
                row(len(rows), stack.labels, value, rate=None if rate == sweep.shared else rate)
            )
    return rows


@pytest.mark.parametrize(
    ("best", "apart"),
    [
        ({A: 0.01, S: 0.01}, ()),
        ({A: 0.005, S: 0.01}, (0.005,)),
        ({A: 0.005, S: 0.02}, (0.005, 0.02)),
        ({A: 0.02, S: 0.02}, ()),
        # The best rate of a mixer that is in neither finalist says nothing about them.
        ({A: 0.01, S: 0.01, M: 0.02}, ()),
    ],
)
def test__rates_apart__best_rates__those_that_differ_by_two(best, apart):
    rows = swept({M: 0.01, P: 0.01} | best)
    assert Sweep.of(STUDY).rates_apart(rows, [(A, A), (S, A)]) == apart


def test__best_rates__stack_without_all_its_rates_or_diverged__is_judged_by_what_ended():
    rows = swept({A: 0.01, S: 0.02, M: 0.01, P: 0.01})
    sweep = Sweep.of(STUDY)
    assert (S, S) not in sweep.best_rates([r for r in rows if rate_of(r, 0.01) != 0.02])
    diverged = [
        row(r.number, r.mixers, None, rate=0.02, state="diverged")
        if r.mixers == (S, S) and rate_of(r, 0.01) == 0.02
        else r
        for r in rows
    ]
    assert sweep.best_rates(diverged)[S, S] == 0.01


def test__confirm__rates_apart__each_repeat_at_every_rate_before_the_next_one():
    strategy = make_strategy("random", {}, 0)
    confirm = next(s for s in phase_sources(STUDY, strategy) if s.phase == "confirm")
    rows = swept({A: 0.005, S: 0.02, M: 0.01, P: 0.01})
    rows.append(row(len(rows), (S, A), 2.0, phase="search"))
    order = []
    for _ in range(7):
        choice = confirm.choose(rows, Ask(len(rows)))
        order.append((choice.role, choice.seed_index, choice.recipe.get("learning_rate")))
        rows.append(
            row(
                len(rows),
                choice.labels,
                2.0,
                rate=choice.recipe.get("learning_rate"),
                seed_index=choice.seed_index,
                phase="confirm",
            )
        )
    assert order == [
        ("pick", 1, None),
        ("pick", 1, 0.005),
        ("pick", 1, 0.02),
        ("reference", 1, None),
        ("reference", 1, 0.005),
        ("reference", 1, 0.02),
        ("pick", 2, None),
    ]


@given(n=st.integers(1, 200), listed=st.integers(1, 12), n_recipe=st.integers(0, 40))
def test__quotas__sweep__takes_at_most_half_of_what_lies_between(n, listed, n_recipe):
    shares, plain = quotas(n, listed, n_recipe=n_recipe), quotas(n, listed)
    assert sum(shares.values()) == n
    assert shares.get("recipe", 0) == min(n_recipe, plain["search"] // 2)
    assert (shares["baseline"], shares["confirm"]) == (plain["baseline"], plain["confirm"])
    assert Agenda(listed, frozenset()).n_recipe == 0


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"training": {"sweep_rates": [0.1]}}, "training.sweep_rates"),
        ({"recipe": "sweep", "training": {"sweep_rates": [0.1]}}, "training.sweep_rates"),
        (
            {"recipe": "sweep", "strategy": {"name": "listed", "options": {"seeds": 2}}},
            "recipe",
        ),
    ],
)
def test__sweep__settings_that_mean_nothing__are_refused_with_their_path(changes, path):
    with pytest.raises(ValidationError) as caught:
        StudySpec.model_validate(changes)
    assert [".".join(map(str, e["loc"])) for e in caught.value.errors()] == [path]


def test__training_key__rates_of_a_sweep__are_no_part_of_it_but_the_rate_is():
    spec = STUDY.encoder_spec(STUDY.space.choices[:2])

    def key(study):
        return training_key(study, spec, fingerprint="f", plugins={})

    shared = STUDY.model_copy(update={"recipe": "shared"})
    assert key(STUDY) == key(shared)
    other = STUDY.with_recipe({"learning_rate": 0.02})
    assert key(other) != key(STUDY)
    assert other.training.learning_rate == 0.02
    wide = StudySpec.model_validate(
        STUDY.model_dump() | {"training": {"learning_rate": 0.02, "sweep_rates": [0.1, 0.3]}}
    )
    assert key(wide) == key(other)
    assert sweep_rates(wide) == (0.02, 0.1, 0.3)
