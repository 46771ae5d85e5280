"""Listed studies: all held against all-attention, corrected together by Holm."""

import dataclasses

import numpy as np
import pytest
from scipy import stats
from simulated import ATTENTION, listed_baselines, question, row

from search.answers.answer import make_answer
from search.answers.listing import chosen_of_list
from search.report.about import About
from search.report.sections import Room
from search.report.text import render
from search.report.verdicts import section
from search.spec.limits import Limit
from search.spec.measures import COSTS
from search.wording import candidate_words

A, S, B = ATTENTION, "sepconv", "bproj"
STACKS = [(A,) * 4, (S, A, A, A), (S, S, A, A), (S,) * 4, (S, S), (B,) * 4]
MEANS = [3.0, 2.9, 2.98, 3.3, 3.1, 3.004]
SEEDS = 6


def listed_question(**changes):
    return question(is_listed=True, space_size=len(STACKS), **changes)


def listed_rows(means=MEANS, stacks=STACKS, seeds=SEEDS, sd=0.01):
    noise = np.random.default_rng(7).normal(0.0, sd, (seeds, len(stacks)))
    rows = []
    for seed in range(seeds):
        for index, stack in enumerate(stacks):
            value = means[index] + noise[seed, index]
            made = row(len(rows), stack, value, phase="confirm", seed=seed + 1, seed_index=seed + 1)
            made = dataclasses.replace(made, selection={"loss": value}, test={"loss": value + 0.1})
            rows.append(made)
    return rows


def answer(rows, asked=None):
    asked = asked or listed_question()
    chosen = chosen_of_list(rows, asked)
    return make_answer(rows, asked, chosen, mixers=[A, S, B], baselines={})


def test__listed_answer__every_architecture__is_held_against_attention_with_holm():
    rows = listed_rows()
    found = answer(rows)
    values = {stack: [r.test["loss"] for r in rows if r.mixers == stack] for stack in STACKS}
    p_values = {}
    for stack in STACKS[1:]:
        welch = stats.ttest_ind(values[stack], np.array(values[STACKS[0]]) + 0.02, equal_var=False)
        p_values["-".join(stack)] = welch.pvalue
    # Holm by hand, at the 4 % of a first look.
    decided, going = set(), True
    for k, (arch_id, p_value) in enumerate(sorted(p_values.items(), key=lambda pair: pair[1])):
        going = going and p_value <= 0.04 / (len(p_values) - k)
        if going:
            decided.add(arch_id)
    assert {c.candidate_id for c in found.contrasts} == set(p_values)
    got = {c.candidate_id for c in found.contrasts if c.verdict.word != "undecided"}
    assert got == decided
    words = {c.candidate_id: c.verdict.word for c in found.contrasts}
    assert words["-".join(STACKS[1])] == "better"
    assert words["-".join(STACKS[3])] == "keep attention"
    assert found.family.confirmatory == 5
    assert found.contrasts[0].candidate_id == found.pick == "-".join(STACKS[1])


def test__chosen_of_list__a_limit_that_the_best_is_over__the_best_within_is_the_pick():
    params = {(S, A, A, A): 300.0, (A,) * 4: 400.0}
    rows = [
        dataclasses.replace(made, params=params.get(made.mixers, 100.0)) for made in listed_rows()
    ]
    free = chosen_of_list(rows, listed_question())
    assert (free["pick"], free["reference"]) == ((S, A, A, A), (A,) * 4)
    limit = Limit("max_params", COSTS["params"], 200.0)
    limited = chosen_of_list(rows, listed_question(limits=(limit,)))
    assert (limited["pick"], limited["reference"]) == ((S, S, A, A), (A,) * 4)
    nobody = dataclasses.replace(limit, bound=50.0)
    assert "pick" not in chosen_of_list(rows, listed_question(limits=(nobody,)))


def test__listed_answer__leaderboard_and_counts__read_all_seeds_on_both_splits():
    found = answer(listed_rows())
    best = found.leaders[0]
    assert (best.n_selection, best.n_test, best.code) == (
        SEEDS,
        SEEDS,
        found.contrasts[0].candidate,
    )
    assert best.test == pytest.approx(best.selection + 0.1)
    assert [row.n_cheap for row in found.counts] == [0, 1, 2, 4]
    assert found.shrinkage is not None
    assert found.shrinkage.lost == pytest.approx(0.0)
    assert found.reach.untested == ()


def test__chosen_of_list__rows__names_pick_reference_shorter_and_rival():
    asked = listed_question()
    rows = listed_rows()
    assert chosen_of_list(rows, asked) == {
        "pick": STACKS[1],
        "reference": STACKS[0],
        "shorter": STACKS[4],
        "rival": STACKS[2],
    }
    assert chosen_of_list([r for r in rows if r.mixers == STACKS[4]], asked) == {"pick": STACKS[4]}
    assert chosen_of_list([], asked) == {}


def test__listed_answer__no_reference__says_that_there_is_nothing_to_hold_against():
    rows = [r for r in listed_rows() if r.mixers != STACKS[0]]
    found = answer(rows)
    assert found.contrasts == ()
    assert "not listed" in " ".join(section(found, None).lines)


def test__listed_answer__attention_is_best__the_next_is_the_candidate():
    found = answer(listed_rows([2.5, *MEANS[1:]]))
    assert found.pick == found.reference
    assert found.contrasts[0].candidate_id == "-".join(STACKS[1])
    assert found.contrasts[0].verdict.word == "keep attention"


def test__verdict_section__little_room__shows_the_first_and_counts_the_rest():
    found = answer(listed_rows())
    assert len(section(found, None).rows) == 5
    short = section(found, Room(leaders=2, layers=1, mixers=1))
    assert len(short.rows) == 2
    assert "(pick)" in short.rows[0][0]
    assert any(line.startswith("3 more") for line in short.lines)


def test__listed_answer__search_study__is_as_before():
    rows = listed_rows()
    searched = make_answer(rows, question(), {}, mixers=[A, S], baselines=listed_baselines())
    assert searched.leaders == ()
    assert searched.family.confirmatory == 3


def test__listed_answer__in_words__no_sampler_no_hybrid_and_the_seeds_still_to_come():
    rows = [one for one in listed_rows() if one.seed_index == 1]
    found = dataclasses.replace(answer(rows), question=listed_question(seeds=SEEDS))
    assert all(contrast.verdict.runs_per_arm <= SEEDS for contrast in found.contrasts)
    text = render(found, About("s"))
    assert "a sampler chose" not in text
    assert f"to decide: the same command with --budget {3 * len(STACKS)}" in text
    assert candidate_words(dataclasses.replace(found, pick=found.reference)) == "best other"
