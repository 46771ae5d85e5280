import subprocess
import sys
from types import MappingProxyType

import pytest

from search.spec.space import Space
from search.strategies import History, make_strategy, offered, option_problems, trial_seed


def space_of(*layers):
    return Space(tuple(MappingProxyType(dict.fromkeys(layer)) for layer in layers))


def test__offered__without_optuna__names_and_options_are_known():
    code = (
        "import sys; from search.strategies import offered, option_problems; offered(); "
        "option_problems('tpe', {'n': 1}); sys.exit('optuna' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("name", sorted(offered()))
def test__make_strategy__every_offered_name__builds_with_every_option(name):
    values = {int: 5, float: 0.5, bool: True, str: "sobol"}
    options = {option: values[kind] for option, kind in offered()[name].options.items()}
    assert option_problems(name, options) == []
    assert make_strategy(name, options, 3) is not None


def test__make_strategy__value_the_sampler_refuses__is_a_value_error():
    with pytest.raises(ValueError, match="qmc_type"):
        make_strategy("qmc", {"qmc_type": "uniform"}, 0)


@pytest.mark.parametrize(
    ("name", "options", "path", "text"),
    [
        ("tp", {}, "name", "did you mean 'tpe'"),
        ("cmaes", {}, "name", "unknown strategy 'cmaes'"),
        ("tpe", {"n_startup": 5}, "options.n_startup", "n_startup_trials"),
        ("tpe", {"n_startup_trials": True}, "options.n_startup_trials", "expected int"),
        ("tpe", {"multivariate": 1}, "options.multivariate", "expected bool"),
        ("random", {"seed": 1}, "options.seed", "no such option"),
    ],
)
def test__option_problems__wrong_name_or_option__says_where_and_what(name, options, path, text):
    [(where, problem)] = option_problems(name, options)
    assert where == path
    assert text in problem


def test__trial_seed__golden_values__do_not_change_between_versions():
    assert [trial_seed(0, 0), trial_seed(42, 7), trial_seed(42, 7, 1)] == GOLDEN
    seeds = {trial_seed(s, n, k) for s in range(5) for n in range(50) for k in range(4)}
    assert len(seeds) == 1000
    assert all(0 <= seed < 2**31 for seed in seeds)


def test__exhaustive__nothing_trained__goes_through_the_space_in_order():
    space = space_of("ab", "xyz")
    strategy = make_strategy("exhaustive", {}, 0)
    taken, order = set(), []
    while True:
        history = History((), frozenset(taken), {"kept": 1})
        proposal = strategy.propose(space, history, number=len(order), sub_seed=0)
        if proposal is None:
            break
        assert proposal.study_attrs == {"kept": 1}
        order.append(proposal.labels)
        taken.add(proposal.labels)
    assert order == [(a, b) for a in "ab" for b in "xyz"]


def test__exhaustive__next_sub_seed__skips_one_more():
    space = space_of("ab", "xyz")
    strategy = make_strategy("exhaustive", {}, 0)
    history = History((), frozenset({("a", "y")}))
    asked = [strategy.propose(space, history, number=0, sub_seed=k).labels for k in range(3)]
    assert asked == [("a", "x"), ("a", "z"), ("b", "x")]


GOLDEN = [710583172, 918955784, 1618412432]
