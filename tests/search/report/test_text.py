import re
from dataclasses import replace
from functools import cache

import pytest
from simulated import ATTENTION, Simulation, question, row

from search.report.about import About
from search.report.markdown import render_markdown
from search.report.text import render

A, S = ATTENTION, "sepconv"
STUDY = "mlm-1a2b3c4d"


def mean(layers):
    cheap = sum(mixer == S for mixer in layers)
    return 2.75 + 0.3 * 0.5**cheap + 0.1 * (4 - len(layers))


@cache
def answer_of(budget, *, sd=0.005, **changes):
    return Simulation(mean, lambda layers: sd, asked=question(**changes), seed=1).run(budget)


@pytest.mark.parametrize("budget", [1, 3, 6, 9, 24, 60, 120])
def test__render__any_budget__fits_a_terminal(budget):
    lines = render(answer_of(budget), About(STUDY)).splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100


def test__render__twelve_layers__fits_a_terminal():
    def deep(layers):
        return 2.5 + 0.01 * sum(mixer == A for mixer in layers) + 0.02 * (12 - len(layers))

    simulation = Simulation(deep, lambda layers: 0.005, asked=question(n_layers=12), seed=2)
    for layer in range(12):  # a pair in every layer, twice
        for base in (A, "bproj"):
            layers = [base] * 12
            for mixer in (A, S, "average"):
                layers[layer] = mixer
                simulation.train(tuple(layers), phase="search")
    lines = render(simulation.run(48), About(STUDY)).splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100


def test__render__decided_study__says_verdicts_noise_lengths_and_places():
    text = render(answer_of(60), About(STUDY, "postgresql://me:secret@db/runs"))
    assert re.search(r"pick - all-attention +-0\.\d+ \[-0\.\d+, -0\.\d+\] +better", text)
    assert re.search(r"repeat SD 0\.00\d+ \(\d+ df", text)
    assert "at 600 steps?" in text
    assert "one recipe for all: AdamW" in text
    assert "exploratory: a sampler chose these runs" in text
    assert f"search show {STUDY} --store 'postgresql://me:***@db/runs'" in text
    assert "secret" not in text


@pytest.mark.parametrize("secret", ["se/cret", "s:e@cret", "s%40cret"])
def test__render__store_with_any_password__does_not_show_it(secret):
    text = render(answer_of(6), About(STUDY, f"postgresql://me:{secret}@db/runs"))
    assert secret not in text
    assert "--store 'postgresql://me:***@db/runs'" in text


def test__render__default_store__is_not_repeated_in_commands():
    text = render(answer_of(24), About(STUDY))
    assert f"next: search show {STUDY} | search report {STUDY} --out report.html\n" in text
    assert "results: sqlite:///search.db" in text


def test__render__undecided__says_which_budget_would_decide():
    text = render(answer_of(24, sd=0.05), About(STUDY))
    assert re.search(r"undecided \(\d+ more runs, about \d+ (s|min|h)", text)
    budget = int(re.search(r"same command with --budget (\d+)", text)[1])
    assert budget > 24
    decided = render(answer_of(budget, sd=0.05), About(STUDY))
    assert decided.count("undecided (") < text.count("undecided (")


def test__render__counts_before_position_before_layers():
    text = render(answer_of(40), About(STUDY))
    places = [text.index(word) for word in ("Cheap layers", "their place", "By layer")]
    assert places == sorted(places)


@pytest.mark.parametrize("budget", [1, 6, 9, 24, 60])
@pytest.mark.parametrize("sd", [0.0, 1e-7, 0.005])
def test__render__any_noise__no_interval_looks_empty(budget, sd):
    for text in (
        render(answer_of(budget, sd=sd), About(STUDY)),
        render_markdown(answer_of(budget, sd=sd), About(STUDY)),
    ):
        assert "nan" not in text.lower().split()
        intervals = re.findall(r"\[([-+.\d]+), ([-+.\d]+)\]", text)
        assert all(low != high for low, high in intervals)
        assert "SD 0 " not in text


def test__render__no_noise_at_all__says_so():
    text = render(answer_of(24, sd=0.0), About(STUDY))
    assert "repeats are identical: does the objective use its seed?" in text
    assert "not measured (identical repeats)" in text


def test__render__no_finished_trial__names_the_first_failure():
    simulation = Simulation(mean, lambda layers: 0.0)
    simulation.rows = [row(0, (A,) * 4, state="failed", error="ValueError: no such file")]
    text = render(simulation.answer(), About(STUDY))
    assert "first failure: ValueError: no such file" in text
    assert "no finished trial: there is no answer" in text
    assert "Verdicts" not in text


def test__render__no_trial__says_so():
    assert "no trial yet" in render(Simulation(mean, lambda layers: 0.0).answer(), About(STUDY))


def test__render__narrow_terminal__wraps_sentences():
    text = render(answer_of(9), About(STUDY), width=72)
    table_or_code = r"Leaderboard| \d+  [A-Z]+ |pick - "
    sentences = [line for line in text.splitlines() if not re.search(table_or_code, line)]
    assert max(map(len, sentences)) <= 72


def test__render_markdown__answer__has_every_architecture_and_escapes_names():
    answer = answer_of(24)
    text = render_markdown(answer, About("my_study"))
    assert text.startswith("# Answer of my\\_study\n")
    assert all(f"| {leader.rank} | {leader.code} |" in text for leader in answer.leaders)
    tables = re.findall(r"(?:^\|.*\|$\n?)+", text, flags=re.MULTILINE)
    for table in tables:
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(widths) == 1
    assert len(tables) >= 3


def test__render__objective_without_unit_or_task__leaves_no_gaps():
    asked = {"unit": "", "task": "own objective f", "steps": None, "recipe": "", "size": "4 layers"}
    text = render(answer_of(24, **asked), About(STUDY))
    assert "()" not in text
    assert "own objective f; 4 layers" in text
    assert "steps" not in text.split("Leaderboard")[0]
    assert not re.search(r"^(Training|Probe)\b", text, flags=re.MULTILINE)


def test__render__nothing_counted_or_timed__no_empty_columns():
    simulation = Simulation(mean, lambda layers: 0.005, seed=1)
    simulation.run(24)
    unmeasured = {"params": 0, "flops": None, "latency_s": None, "step_s": None, "seconds": 1e-4}
    simulation.rows = [replace(entry, **unmeasured) for entry in simulation.rows]
    text = render(simulation.answer(), About(STUDY))
    assert "params" not in text
    assert "latency" not in text
    assert "about" not in text
    assert "Costs" not in text


def test__render__hybrid_pick__says_which_rival_is_not_beaten():
    def flat(layers):
        return 3.0 - 0.1 * (A in layers and S in layers) + 0.001 * (len(layers) < 4)

    simulation = Simulation(flat, lambda layers: 0.001, seed=1)
    assert "at 600 steps? yes\n" in render(simulation.run(60), About(STUDY))
    tied = Simulation(lambda layers: 3.0, lambda layers: 0.001, seed=1)
    answer = tied.run(60)
    assert not answer.pick_is_pure
    words = " ".join(render(answer, About(STUDY)).split())
    assert "at 600 steps? no (all-attention, shorter model, rival)" in words
