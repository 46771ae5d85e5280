from simulated import ATTENTION, Simulation, question

from search.report.contrasts import contrast_table

A, S = ATTENTION, "sepconv"


def contrasts_of(budget):
    simulation = Simulation(
        lambda layers: 2.75 + 0.3 * 0.5 ** layers.count(S) + 0.1 * (4 - len(layers)),
        lambda layers: 0.005,
        asked=question(),
        seed=1,
    )
    return simulation.run(budget).contrasts


def test__contrast_table__in_full__adjusted_p_and_df_beside_the_difference():
    contrasts = contrasts_of(60)
    names = [contrast.other for contrast in contrasts]
    header, rows = contrast_table(contrasts, names, question(), full=True)
    assert header == ("on the test split", ">difference (nats)", ">p, adjusted", ">df", "verdict")
    for contrast, row in zip(contrasts, rows, strict=True):
        assert row[0] == contrast.other
        assert row[2].startswith("< 0.0001") == (contrast.p_value < 1e-4)
        assert float(row[3]) == round(contrast.interval.df, 1)
        assert row[4] == contrast.verdict.text


def test__contrast_table__without_room_or_repeats__no_empty_columns():
    for contrasts, full in ((contrasts_of(60), False), (contrasts_of(6), True)):
        names = ["-"] * len(contrasts)
        header, _ = contrast_table(contrasts, names, question(), full=full)
        assert header == ("on the test split", ">difference (nats)", "verdict")
