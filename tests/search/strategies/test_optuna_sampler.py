import contextlib
import warnings
import zlib
from dataclasses import dataclass
from types import MappingProxyType

import optuna
import pytest

from search.spec.space import Space
from search.strategies import History, PastTrial, make_strategy, offered, trial_seed
from search.strategies.optuna_sampler import OptunaSampler
from search.strategies.rebuilding import SharedTrials, distributions, rebuild

SEED = 5
N_TRIALS = 120
LAYERS = 4
SAMPLERS = [name for name, offer in offered().items() if offer.sampler]
KINDS = ("attention", "sepconv", "bproj", "average", "hardmax_shift")


def make_space(kinds=KINDS, layers=LAYERS):
    return Space(tuple(MappingProxyType(dict.fromkeys(kinds)) for _ in range(layers)))


def objective(labels):
    hashed = zlib.crc32("/".join(labels).encode()) / 2**32
    return 0.3 * labels.count("attention") - 0.2 * labels.count("sepconv") + 0.1 * hashed


def cost(labels):
    return labels.count("attention") + 0.5 * labels.count("bproj")


def state_of(number):
    return {5: "failed", 9: "pruned"}.get(number % 11, "complete")


@dataclass(frozen=True)
class Problem:
    """What is optimised: objectives by architecture, their directions, and limits."""

    directions: tuple = ("minimize",)
    limited: bool = False

    def values(self, labels):
        both = objective(labels), -cost(labels)
        return both[: len(self.directions)]

    def excesses(self, labels):
        return {"max_cost": cost(labels) - 1.5} if self.limited else {}


ONE = Problem()
TWO = Problem(("minimize", "maximize"))
LIMITED = Problem(limited=True)
TWO_LIMITED = Problem(("minimize", "maximize"), limited=True)


def plain_suggestions(sampler, space, n_trials, lag, problem=ONE):
    """What a plain Optuna study suggests; `lag` trials are always running."""
    states = {
        "complete": optuna.trial.TrialState.COMPLETE,
        "failed": optuna.trial.TrialState.FAIL,
        "pruned": optuna.trial.TrialState.PRUNED,
    }
    plain = sampler.sampler_for(space, SEED)
    study = optuna.create_study(directions=problem.directions, sampler=plain)
    asked = []
    for number in range(n_trials):
        if not sampler.offer.seeded_by_study:
            study.sampler = sampler.sampler_for(space, trial_seed(SEED, number))
        trial = study.ask(distributions(space))
        asked.append((trial, space.labels(trial.params)))
        if number >= lag:
            done, labels = asked[number - lag]
            state = state_of(done.number)
            values = problem.values(labels) if state == "complete" else None
            if state == "complete":
                for name, excess in problem.excesses(labels).items():
                    done.set_constraint(name, excess)
            # Study.stop outside of optimize raises: an exhausted sampler says so this way.
            with contextlib.suppress(RuntimeError):
                study.tell(done, values, state=states[state])
    return [labels for _, labels in asked]


def rebuilt_suggestions(sampler, space, n_trials, lag, problem=ONE):
    past, study_attrs, suggested = [], {}, []
    for number in range(n_trials):
        finished = number - lag
        seen = tuple(
            trial
            if trial.number < finished
            else PastTrial(trial.number, "running", trial.labels, attrs=trial.attrs)
            for trial in past
        )
        history = History(seen, frozenset(), study_attrs, problem.directions)
        proposal = sampler.propose(space, history, number=number, sub_seed=0)
        study_attrs = proposal.study_attrs
        state, labels = state_of(number), proposal.labels
        facts = ((), {})
        if state == "complete":
            facts = problem.values(labels), problem.excesses(labels)
        past.append(PastTrial(number, state, labels, facts[0], proposal.attrs, facts[1]))
        suggested.append(proposal.labels)
    return suggested


@pytest.fixture(autouse=True)
def quiet_optuna():
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        yield


def check_rebuilt(name, n_trials, lag, problem=ONE):
    options = {"population_size": 10} if name == "nsgaii" else {}
    sampler = make_strategy(name, options, SEED)
    assert isinstance(sampler, OptunaSampler)
    space = make_space()
    expected = plain_suggestions(sampler, space, n_trials, lag, problem)
    assert rebuilt_suggestions(sampler, space, n_trials, lag, problem) == expected
    assert len(set(expected)) > n_trials // 5


@pytest.mark.parametrize("lag", [0, 3])
@pytest.mark.parametrize("name", sorted(set(SAMPLERS) - {"gp"}))
def test__optuna_sampler__rebuilt_before_each_ask__suggests_what_a_plain_study_does(name, lag):
    check_rebuilt(name, N_TRIALS, lag)


@pytest.mark.parametrize("problem", [TWO, LIMITED, TWO_LIMITED], ids=["two", "limit", "both"])
@pytest.mark.parametrize("name", sorted(set(SAMPLERS) - {"gp"}))
def test__optuna_sampler__objectives_and_limits__rebuilt_as_in_a_plain_study(name, problem):
    check_rebuilt(name, N_TRIALS // 2, 2, problem)


@pytest.mark.parametrize("name", ["tpe", "nsgaii"])
def test__optuna_sampler__limit__is_heeded(name):
    options = {"population_size": 10} if name == "nsgaii" else {}
    sampler = make_strategy(name, options, SEED)
    worst_first = Problem(("maximize",))
    costly = rebuilt_suggestions(sampler, make_space(), N_TRIALS, 0, worst_first)[60:]
    limited = rebuilt_suggestions(
        sampler, make_space(), N_TRIALS, 0, Problem(("maximize",), limited=True)
    )[60:]
    assert sum(cost(labels) <= 1.5 for labels in costly) < 20
    assert sum(cost(labels) <= 1.5 for labels in limited) > 40


@pytest.mark.slow
@pytest.mark.parametrize("lag", [0, 3])
def test__optuna_sampler__gp_rebuilt__suggests_what_a_plain_study_does(lag):
    check_rebuilt("gp", N_TRIALS, lag)


@pytest.mark.parametrize("problem", [ONE, TWO_LIMITED], ids=["one", "two and a limit"])
def test__optuna_sampler__gp_rebuilt_shortly__suggests_what_a_plain_study_does(problem):
    check_rebuilt("gp", 16, 1, problem)


def test__optuna_sampler__without_its_notes__genetic_search_differs():
    # What the columns of sampler notes are for: without them NSGA-II stays random.
    sampler = make_strategy("nsgaii", {"population_size": 10}, SEED)
    space = make_space()
    past = tuple(
        PastTrial(number, "complete", space.at(5 * number), (objective(space.at(5 * number)),))
        for number in range(40)
    )
    bare = sampler.propose(space, History(past, frozenset()), number=40, sub_seed=0)
    assert bare.attrs["NSGAIISampler:generation"] == 0
    suggested = rebuilt_suggestions(sampler, space, 40, 0)
    assert suggested != plain_suggestions(make_strategy("random", {}, SEED), space, 40, 0)


def test__optuna_sampler__numbers_missing__keep_the_places_of_later_trials():
    sampler = make_strategy("tpe", {"n_startup_trials": 3}, SEED)
    space = make_space()
    known = tuple(
        PastTrial(number, "complete", space.at(7 * number), (objective(space.at(7 * number)),))
        for number in (2, 3, 5, 8)
    )
    storage = optuna.storages.InMemoryStorage()
    study_id = rebuild(storage, space, History(known, frozenset()), 10, SharedTrials())
    trials = storage.get_all_trials(study_id)
    assert [t.number for t in trials if t.state.is_finished()] == [2, 3, 5, 8]
    assert [t._trial_id for t in trials] == list(range(10))
    proposal = sampler.propose(space, History(known, frozenset()), number=10, sub_seed=0)
    assert proposal.labels in space


def test__optuna_sampler__next_sub_seed__asks_for_something_else():
    space = make_space()
    for name in ("random", "tpe", "bruteforce"):
        sampler = make_strategy(name, {}, SEED)
        asked = {
            sampler.propose(space, History((), frozenset()), number=0, sub_seed=k).labels
            for k in range(10)
        }
        assert len(asked) > 5
    qmc = make_strategy("qmc", {}, SEED)
    history = History((), frozenset())
    past = PastTrial(0, "complete", space.at(0), (1.0,))
    asked = set()
    for sub_seed in range(8):
        history = History((past,), frozenset(), history.study_attrs)
        proposal = qmc.propose(space, history, number=1, sub_seed=sub_seed)
        history = History((past,), frozenset(), proposal.study_attrs)
        asked.add(proposal.labels)
    assert len(asked) > 5
