from dataclasses import replace

from simulated import ATTENTION, Simulation, question

from search.report.errors import section
from search.report.sections import Room
from search.rows import DocumentSums

S = "sepconv"


def answer_of(budget, documents=False):
    simulation = Simulation(
        lambda layers: 2.75 + 0.3 * 0.5 ** layers.count(S) + 0.1 * (4 - len(layers)),
        lambda layers: 0.005,
        asked=question(),
        seed=1,
    )
    simulation.run(budget)
    if documents:
        sizes = (10,) * 8
        simulation.rows = [
            replace(
                row,
                documents={
                    "test": DocumentSums(
                        sizes,
                        tuple(
                            10 * row.test["loss"] + (index % 3) * row.mixers.count(ATTENTION)
                            for index in range(8)
                        ),
                    )
                },
            )
            if row.test
            else row
            for row in simulation.rows
        ]
    return simulation.answer()


def test__errors__repeated_finalists__p_values_df_and_common_seeds():
    answer = answer_of(60)
    found = section(answer, None)
    assert [row[0] for row in found.rows] == [
        f"{contrast.candidate} - {contrast.other}" for contrast in answer.contrasts
    ]
    assert found.header[1:3] == (">p-value", ">degrees of freedom")
    assert found.rows[0][2] == f"{answer.contrasts[0].interval.df:.1f}"
    assert not any("documents" in name for name in found.header)


def test__errors__documents_read__their_part_in_the_objectives_unit():
    answer = answer_of(60, documents=True)
    found = section(answer, None)
    column = found.header.index(">error of documents (nats)")
    assert float(found.rows[0][column]) == float(f"{answer.contrasts[0].evaluation.sd:.2g}")


def test__errors__terminal_or_no_repeats__nothing():
    assert not section(answer_of(60), Room(8, 6, 2))
    assert not section(answer_of(1), None)
