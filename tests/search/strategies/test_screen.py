from collections import Counter
from types import MappingProxyType

import optuna
import pytest

from search.spec.space import Space
from search.strategies import History, PastTrial, make_strategy
from search.strategies.screen import ScreenSampler
from search.strategies.screen_design import screening_design
from search.strategies.screen_plan import Screening, screening_of

KINDS = ("attention", "sepconv", "average")
SEED = 3


def make_space(*layers):
    return Space(tuple(MappingProxyType(dict.fromkeys(kinds)) for kinds in layers))


def search_space(n_layers=4, kinds=KINDS):
    return {f"layer_{layer}": list(kinds) for layer in range(n_layers)}


def stacks(letters, kinds=KINDS):
    by_letter = {kind[0]: kind for kind in kinds}
    return tuple(by_letter[letter] for letter in letters)


def plain(sampler, n_trials, value, enqueued=(), direction="minimize"):
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=sampler, direction=direction)
    names = list(sampler.search_space)
    for labels in enqueued:
        study.enqueue_trial(dict(zip(names, labels, strict=True)))

    def objective(trial):
        return value(
            tuple(trial.suggest_categorical(n, c) for n, c in sampler.search_space.items())
        )

    study.optimize(objective, n_trials=n_trials)
    return study, [tuple(trial.params[name] for name in names) for trial in study.trials]


def design_of(cheap, n_layers=4):
    return {
        tuple(cheap if is_cheap else "attention" for is_cheap in run)
        for run in screening_design(n_layers).runs
    }


def test__screen_sampler__plain_optuna__runs_the_design_and_then_searches_all_choices():
    sampler = ScreenSampler(search_space(), then=optuna.samplers.TPESampler(seed=0))
    study, asked = plain(sampler, 40, lambda labels: labels.count("attention"))
    assert set(asked[:16]) == design_of("sepconv")
    assert len(set(asked[:16])) == 16
    assert any("average" in labels for labels in asked[16:])
    noted = [trial.number for trial in study.trials if "screen" in trial.system_attrs]
    assert noted == list(range(16))


def test__screen_sampler__uniform_stacks_enqueued__design_has_the_best_of_them():
    uniform = [(kind,) * 4 for kind in KINDS]
    for direction, cheap in (("minimize", "sepconv"), ("maximize", "average")):
        _, asked = plain(
            ScreenSampler(search_space()),
            17,
            lambda labels: labels.count("average") - labels.count("sepconv"),
            enqueued=uniform,
            direction=direction,
        )
        assert set(asked) == design_of(cheap) | set(uniform)


def test__screen_sampler__a_better_mixer_turns_up_later__design_stays():
    # Here all-average is only seen after the first run of the design settled the mixer.
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=ScreenSampler(search_space()))
    space = {
        name: optuna.distributions.CategoricalDistribution(choices)
        for name, choices in search_space().items()
    }
    first = study.ask(space)
    study.tell(first, 5.0)
    study.enqueue_trial(dict.fromkeys(space, "average"))
    for _ in range(16):
        study.tell(study.ask(space), 1.0)
    seen = {tuple(trial.params.values()) for trial in study.trials}
    assert seen == design_of("sepconv") | {("average",) * 4}


def test__screen_sampler__failed_and_running_runs__are_not_repeated():
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=ScreenSampler(search_space(), cheap="average"))
    space = {
        name: optuna.distributions.CategoricalDistribution(choices)
        for name, choices in search_space().items()
    }
    for number in range(16):
        trial = study.ask(space)
        if number % 2:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
    assert {tuple(trial.params.values()) for trial in study.trials} == design_of("average")


def test__screen_sampler__no_reference_among_the_choices__leaves_all_to_tpe():
    sampler = ScreenSampler(search_space(kinds=("sepconv", "average")))
    study, _ = plain(sampler, 5, lambda labels: 0.0)
    assert not any("screen" in trial.system_attrs for trial in study.trials)


def propose(strategy, space, n_trials, value, taken=frozenset()):
    past, notes = [], {}
    for number in range(n_trials):
        history = History(tuple(past), taken | {trial.labels for trial in past}, notes)
        proposal = strategy.propose(space, history, number=number, sub_seed=0)
        notes = proposal.study_attrs
        values = (value(proposal.labels),)
        past.append(PastTrial(number, "complete", proposal.labels, values, proposal.attrs))
    return past


def test__screen__rebuilt_from_rows__varies_the_layers_that_have_both():
    space = make_space(KINDS, ("attention", "average"), ("average",), KINDS, KINDS, KINDS)
    past = propose(make_strategy("screen", {}, SEED, ("attention", "average")), space, 20, len)
    of_design = [trial for trial in past if "screen" in trial.attrs]
    assert len(of_design) == 16
    assert all(trial.labels in space and trial.labels[2] == "average" for trial in past)
    # Layer 2 has no attention, so five layers vary: 16 runs, and layer 2 stays as it is.
    assert past[0].attrs["screen"]["layers"] == [0, 1, 3, 4, 5]
    assert Counter(trial.labels[0] for trial in of_design) == {"attention": 8, "average": 8}


def test__screen__runs_over_a_limit__are_left_out():
    class Limited(Space):
        def __contains__(self, labels):
            return super().__contains__(labels) and labels.count("attention") <= 2

    full = make_space(KINDS, KINDS, KINDS, KINDS)
    past = propose(make_strategy("screen", {}, SEED), Limited(full.layers), 11, len)
    assert {trial.labels for trial in past} == {
        labels for labels in design_of("sepconv") if labels.count("attention") <= 2
    }


def test__screen__is_screening__ends_with_the_last_run():
    space, strategy = make_space(KINDS, KINDS), make_strategy("screen", {}, SEED)
    past = propose(strategy, space, 4, len)
    for n in range(5):
        seen = frozenset(trial.labels for trial in past[:n])
        assert strategy.is_screening(space, History(tuple(past[:n]), seen)) == (n < 4)


def test__screen__next_sub_seed__passes_over_one_run():
    space, strategy = make_space(KINDS, KINDS), make_strategy("screen", {}, SEED)
    asked = [
        strategy.propose(space, History((), frozenset()), number=0, sub_seed=k).labels
        for k in range(4)
    ]
    assert set(asked) == design_of("sepconv", 2)
    beyond = strategy.propose(space, History((), frozenset()), number=0, sub_seed=4)
    assert "screen" not in beyond.attrs


@pytest.mark.parametrize(
    ("choices", "uniform", "cheap"),
    [
        (KINDS, {}, "sepconv"),
        (KINDS, {"average": 1.0, "attention": 0.0, "sepconv": 2.0}, "average"),
        (("attention", "bproj", "average"), {}, "bproj"),
        (("attention(n_heads=2)", "attention(n_heads=4)", "average"), {}, "average"),
        (("attention(n_heads=2)", "attention(n_heads=4)"), {}, "attention(n_heads=4)"),
    ],
)
def test__screening_of__choices_and_results__names_the_cheap_mixer(choices, uniform, cheap):
    found = screening_of([choices] * 3, "attention", "sepconv", uniform)
    assert (found.reference, found.cheap) == (choices[0], cheap)


@pytest.mark.parametrize("choices", [("sepconv",), ("attention",), ("sepconv", "average")])
def test__screening_of__one_of_the_two_is_missing__there_is_no_design(choices):
    assert screening_of([choices] * 2, "attention", "sepconv", {}) is None


def test__screening__note_and_run__are_read_back():
    screening = screening_of([KINDS, ("average",), KINDS], "attention", "sepconv", {})
    assert Screening.of_note(screening.note()) == screening
    for run in screening.design.runs:
        assert screening.run(screening.labels(run)) == run
    assert screening.run(("attention", "average", "average")) is None
    assert screening.run(("attention", "sepconv", "sepconv")) is None
    assert screening.run(("attention", "average")) is None
