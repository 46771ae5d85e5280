import theory_oracle as oracle
from command import call

from mixers.theory.sizes import Sizes
from search.cli.theory_plot import sweep, sweep_figure


def test__sweep__three_tokens__each_is_shifted_once_then_all_together():
    stages = sweep(Sizes(1, 3, 4), [[3], [0], [1]])
    assert [name for name, _ in stages] == [
        "quantised", "shift at 0", "shift at 1", "shift at 3", "global layer",
    ]  # fmt: skip
    assert stages[1][1] == [3, 0 + 4 * 3, 1]
    assert stages[-1][1] == oracle.ids(oracle.context_theorem_2([[3, 0, 1]], 4), 4)
    figure = sweep_figure(stages, "three")
    assert [next(iter(line.y)) for line in figure.data] == [4, 1, 2]


def test__plot__page__is_written(capsys, tmp_path):
    path = tmp_path / "sweep.html"
    done = call(capsys, "theory", "plot", "--out", str(path))
    assert done.code == 0
    assert "ids after each layer that acts" in path.read_text(encoding="utf-8")


def test__plot__too_many_shifts__one_line_and_code_2(capsys, tmp_path):
    out = str(tmp_path / "sweep.html")
    done = call(capsys, "theory", "plot", "--d", "8", "--out", out, "--delta", "1/8")
    assert done.code == 2
    assert "16,777,216 shifts are too many to draw" in done.error_line


def test__plot__ids_beyond_floats__one_line_and_code_2(capsys, tmp_path):
    out = str(tmp_path / "sweep.html")
    done = call(
        capsys, "theory", "plot", "--d", "1", "--n", "200", "--delta", "1/256", "--out", out
    )
    assert done.code == 2
    assert "units are too large to draw; take a smaller --n" in done.error_line
