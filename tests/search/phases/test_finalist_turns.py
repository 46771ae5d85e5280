"""In which order the finalists get their seeds, and how many each gets."""

import pytest
from simulated import row

from search.phases.finalists import Finalist, repeats_of_first, runs_until, turns

LAYERS = {"pick": "sepconv", "reference": "attention", "shorter": "bproj", "rival": "average"}


def served(roles, n_runs):
    chosen = [Finalist(role, (LAYERS[role],)) for role in roles]
    rows, order = [], []
    for number in range(n_runs):
        finalist, seed_index = next(turns(chosen, rows))
        order.append(finalist.role)
        rows.append(row(number, finalist.labels, phase="confirm", seed_index=seed_index))
    return order


def test__turns__four__the_first_contrast_is_served_before_the_others():
    order = served(["pick", "reference", "shorter", "rival"], 18)
    assert order[:8] == ["pick", "reference"] * 4
    assert order[8:14] == ["shorter"] * 3 + ["rival"] * 3
    assert order[14:] == ["shorter", "rival", "pick", "reference"]


def test__turns__the_reference_is_the_pick__the_rival_stands_against_it():
    order = served(["pick", "shorter", "rival"], 11)
    assert order == ["pick", "rival"] * 4 + ["shorter"] * 3


def test__turns__no_reference_was_trained__pick_and_rival_first():
    assert served(["pick", "rival"], 4) == ["pick", "rival", "pick", "rival"]


@pytest.mark.parametrize("n_finalists", [1, 2, 3, 4])
@pytest.mark.parametrize("repeats", [1, 3, 4, 6])
def test__runs_until__that_many_runs__give_every_finalist_its_repeats(n_finalists, repeats):
    roles = list(LAYERS)[:n_finalists]
    needed = runs_until(n_finalists, repeats)
    order = served(roles, needed)
    assert min(order.count(role) for role in roles) >= repeats
    order = served(roles, needed - 1)
    assert min(order.count(role) for role in roles) < max(3, repeats)


@pytest.mark.parametrize("n_runs", [0, 1, 4, 7, 8, 13, 20])
def test__repeats_of_first__plan__is_what_the_turns_give(n_runs):
    order = served(list(LAYERS), n_runs)
    assert repeats_of_first(4, n_runs) == min(order.count("pick"), order.count("reference"))
