import itertools
import json
import shutil

import pytest
from simulated import ATTENTION, MIXERS, Simulation, question, row

from search.answers.answer import make_answer
from search.errors import InputError
from search.figures import files, plots
from search.figures.shown import page_figure
from search.strategies.screen_plan import NOTE, screening_of

A, S = ATTENTION, "sepconv"


def simulation(budget=24, **changes):
    def mean(layers):
        return 3.0 - 0.05 * sum(mixer == S for mixer in layers) + 0.1 * (4 - len(layers))

    made = Simulation(mean, lambda layers: 0.01, asked=question(**changes), seed=4)
    return made, made.run(budget)


@pytest.mark.parametrize("name", plots.FIGURES)
@pytest.mark.parametrize("budget", [1, 9, 24])
def test__figures__any_budget__strict_json_with_title_and_axes(name, budget):
    made, answer = simulation(budget)
    figure = plots.FIGURES[name](made.rows, answer)
    document = json.loads(figure.to_json())
    json.dumps(document, allow_nan=False)
    assert document["layout"]["title"]["subtitle"]["text"].startswith("mlm on sotu")
    assert document["layout"]["xaxis"]["title"]["text"]
    assert document["data"] or name == "effects"  # without pairs there is no effect to draw


@pytest.mark.parametrize("name", plots.FIGURES)
def test__figures__no_rows__empty_but_drawn(name):
    made = Simulation(lambda layers: 0.0, lambda layers: 0.0)
    assert plots.FIGURES[name](made.rows, made.answer()).layout.title.text


def test__heat_map__cells__mean_and_number_of_runs_by_hand():
    made = Simulation(lambda layers: 0.0, lambda layers: 0.0)
    made.rows = [
        row(0, (A, A, A, A), 3.0),
        row(1, (S, A, A, A), 2.0),
        row(2, (S, S, A, A), 1.0),
        row(3, (S, S), 9.0),
        row(4, (S, S, S, S), 9.0, state="diverged"),
    ]
    heat = plots.heat_map(made.rows, made.answer()).data[0]
    assert list(heat.y) == ["attention", "sepconv"]
    assert [list(line) for line in heat.z] == [[3.0, 2.5, 2.0, 2.0], [1.5, 1.0, None, None]]
    assert heat.text[1][0] == "1.500<br>\u00b1 0.707<br>n 2"
    assert heat.text[1][1] == "1.000<br>n 1"


def test__effects__measured_cells__interval_as_bar():
    made = Simulation(lambda layers: 0.1 * layers.count(S), lambda layers: 0.01, seed=3)
    for base in (A, "bproj", "average"):
        for mixer in (A, S):
            made.train((mixer, base, base, base), phase="search")
    answer = made.answer()
    (effect,) = [found for found in answer.layers if found.interval and found.interval.low]
    (drawn,) = plots.effects(answer).data
    assert (effect.layer, effect.mixer, effect.n) == (0, S, 3)
    assert drawn.y == (f"layer 0: {S}",)
    assert drawn.x[0] - drawn.error_x.arrayminus[0] == pytest.approx(effect.interval.low)
    assert drawn.x[0] + drawn.error_x.array[0] == pytest.approx(effect.interval.high)


def test__leaderboard__finalists__test_mean_with_repeat_sd():
    _, answer = simulation(36)
    filled = [trace for trace in plots.leaderboard(answer).data if trace.error_x.array is not None]
    drawn = {
        (label, value) for trace in filled for label, value in zip(trace.y, trace.x, strict=True)
    }
    expected = {(f"{row.rank}. {row.code}", row.test) for row in answer.leaders if row.n_test}
    assert drawn == expected


def test__effects__design__average_and_in_the_stack_layer_by_layer():
    made = Simulation(lambda layers: 3.0 - 0.1 * layers.count(S), lambda layers: 0.003, seed=2)
    plan = screening_of([(A, S)] * 4, A, S, {})
    for index, run in enumerate(plan.design.runs):
        attrs = {NOTE: {**plan.note(), "run": index, "runs": 0}}
        made.train(plan.labels(run), phase="screen", sampler_attrs=attrs)
    answer = made.run(24)
    layers = answer.design.layers
    drawn = {trace.name: trace for trace in plots.effects(answer).data}
    assert list(drawn["sepconv, average"].x) == [layer.average.estimate for layer in layers]
    inside = [layer.in_stack.estimate for layer in layers if layer.in_stack]
    assert list(drawn[f"sepconv in {answer.design.stack}"].x) == inside


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test__pareto__line__nothing_cheaper_or_equal_is_better(direction):
    _, answer = simulation(24, direction=direction)
    line = plots.pareto(answer).data[0]
    sign = 1 if direction == "minimize" else -1
    points = answer.pareto.points
    assert len(line.x) > 0
    for flops, value in zip(line.x, line.y, strict=True):
        rivals = [sign * point.values[0] for point in points if point.values[1] <= flops]
        assert sign * value == min(rivals)


def test__pareto__repeated_architectures__bars_are_their_intervals():
    _, answer = simulation(36)
    known = {p.code: p for p in answer.pareto.points if p.low[0] is not None}
    for trace in plots.pareto(answer).data[1:]:
        for code, value, above, below in zip(
            trace.text, trace.y, trace.error_y.array, trace.error_y.arrayminus, strict=True
        ):
            if code in known:
                assert value + above == pytest.approx(known[code].high[0])
                assert value - below == pytest.approx(known[code].low[0])
    assert known


def test__write_html__figures__a_page_that_needs_no_network(tmp_path):
    made, answer = simulation(9)
    figures = [draw(made.rows, answer) for draw in plots.FIGURES.values()]
    page = tmp_path / "plots.html"
    files.write_html(figures, page, title="a <study>", plotly_js="file")
    text = page.read_text(encoding="utf-8")
    assert text.count("Plotly.newPlot(") == len(figures)
    assert "<title>a &lt;study&gt;</title>" in text
    assert 'src="http' not in text
    assert (tmp_path / "plotly.min.js").stat().st_size > 1_000_000
    files.write_html(figures, page, title="a")
    assert page.stat().st_size > 1_000_000


def test__write_image__no_browser__one_line_that_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("BROWSER_PATH", str(tmp_path / "absent"))
    _, answer = simulation(3)
    with pytest.raises(InputError, match="apt install chromium"):
        files.write_image(plots.pareto(answer), tmp_path / "a.png")


def test__write_image__unknown_ending__refused_with_the_endings(tmp_path):
    _, answer = simulation(3)
    with pytest.raises(InputError, match=r"a\.gif.*\.png"):
        files.write_image(plots.pareto(answer), tmp_path / "a.gif")


@pytest.mark.skipif(not any(map(shutil.which, files.BROWSERS)), reason="needs a Chrome or Chromium")
@pytest.mark.parametrize(("name", "start"), [("a.png", b"\x89PNG"), ("a.svg", b"<svg")])
def test__write_image__with_a_browser__a_picture(tmp_path, name, start):
    pytest.importorskip("kaleido")
    _, answer = simulation(9)
    files.write_image(plots.leaderboard(answer), tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)


def test__figures__listed_study__show_its_trials_though_all_are_confirmation():
    rows = [
        row(
            n,
            layers,
            phase="confirm",
            seed=1,
            seed_index=1,
            selection={"loss": 3.0 - 0.1 * n},
            test={"loss": 3.0 - 0.1 * n},
            curve=((100, 3.5), (200, 3.0 - 0.1 * n)),
        )
        for n, layers in enumerate(((ATTENTION,) * 4, ("sepconv",) * 4))
    ]
    swept = row(2, ("sepconv",) * 4, 1.0, recipe={"learning_rate": 0.1}, curve=((1, 9.0), (2, 1.0)))
    asked = question(is_listed=True)
    answer = make_answer([*rows, swept], asked, {}, mixers=MIXERS, baselines={})
    everything = [*rows, swept]
    assert len(plots.FIGURES["curves"](everything, answer).data) == 2
    heat = plots.FIGURES["heat-map"](everything, answer).data[0]
    assert [value for line in heat.z for value in line] == [3.0] * 4 + [2.9] * 4
    assert len(plots.FIGURES["counts"](everything, answer).data[0].x) == 2


def test__figures__thousands_of_trials__the_best_or_an_even_share_and_it_is_said():
    kinds = ("sepconv", "bproj", "average", ATTENTION)
    stacks = [stack for stack in itertools.product(kinds, repeat=4) if stack.count(A) == 1]
    rows = [row(0, (A,) * 4, 9.0, phase="baseline", role="reference", curve=((1, 9.5), (2, 9.0)))]
    rows += [
        row(n, stack, 2.0 + n / 1000, curve=((1, 4.0), (2, 2.0 + n / 1000)), flops=1000 + n)
        for n, stack in enumerate(stacks * 5, start=1)
    ]
    answer = make_answer(rows, question(), {"reference": (A,) * 4}, mixers=kinds, baselines={})
    curves = plots.FIGURES["curves"](rows, answer)
    ends = sorted(trace.y[-1] for trace in curves.data)
    assert ends == sorted(r.selection["loss"] for r in rows if r.number <= 60)
    assert curves.layout.meta == {"left_out": f"{len(rows) - 61} worse trials are not drawn"}
    counts = plots.FIGURES["counts"](rows, answer)
    drawn = [y for x, y in zip(counts.data[0].x, counts.data[0].y, strict=True) if x == 3]
    assert len(drawn) == 60
    assert max(drawn) - min(drawn) > 0.95 * len(rows) / 1000
    shown = page_figure("counts", counts)
    assert shown.left_out == f"{len(rows) - 61} of {len(rows)} trials, spread evenly, are not drawn"
