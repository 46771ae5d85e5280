import re
from dataclasses import replace

import numpy as np
from simulated import ATTENTION, MIXERS, listed_baselines, question, row

from search.answers.answer import make_answer
from search.report import noise, verdicts
from search.report.sections import Room
from search.rows import DocumentSums

ALL_A, ALL_S = (ATTENTION,) * 4, ("sepconv",) * 4
CHOSEN = {"pick": ALL_S, "reference": ALL_A}


def answer_of(n, *, spread=(0.01, 0.01), documents=True, state="completed", look=1):
    """Runs of two stacks whose documents suit them differently."""
    generator = np.random.default_rng(0)
    rows = [row(k, layers, 3.0, phase="baseline") for k, layers in enumerate((ALL_S, ALL_A))]
    rows.append(row(2, ("bproj",) * 4, 3.0, state=state))
    for layers, mean, sd in ((ALL_S, 2.5, spread[0]), (ALL_A, 3.0, spread[1])):
        gaps = generator.normal(0, 0.02, 12)
        for seed, luck in enumerate(sd * generator.standard_normal(n), start=1):
            sums = tuple((100 * (mean + luck + gaps)).tolist())
            fields = {"phase": "confirm", "seed": seed, "seed_index": seed}
            if documents:
                fields["documents"] = {"test": DocumentSums((100,) * 12, sums)}
            loss = sum(sums) / 1200
            rows.append(row(len(rows), layers, loss, **fields))
    return make_answer(
        rows, question(), CHOSEN, mixers=MIXERS, baselines=listed_baselines(), look=look
    )


def lines(section):
    return "\n".join(section.lines)


def test__noise__full_report__names_documents_and_common_seeds_and_the_terminal_does_not():
    answer = answer_of(5)
    text = lines(noise.section(answer, None))
    sd = answer.contrasts[0].evaluation.sd
    assert "SSSS - AAAA: standard error from 12 groups of test documents" in text
    assert f"{sd:.2g}" in text
    assert re.search(r"correlation over 5 common seeds [+-]\d\.\d\d \[[+-]\d", text)
    assert re.search(r"\(it is (not )?paired: one-sided p 0\.\d+\)", text)
    short = lines(noise.section(answer, Room(5, 5, 5)))
    assert "groups of test documents" not in short


def test__noise__stacks_of_unlike_noise__each_has_its_own_sd():
    unlike = answer_of(5, spread=(0.001, 0.05))
    text = lines(noise.section(unlike, None))
    assert re.search(r"repeat SD differs by architecture \(Bartlett's p \S+\): SSSS 0\.00", text)
    perhaps = replace(unlike, noise=replace(unlike.noise, equal_p=0.11))
    assert "SD may differ by architecture (Bartlett's p 0.11)" in lines(
        noise.section(perhaps, None)
    )
    assert "fewer than 6 degrees of freedom" in lines(noise.section(answer_of(3), None))


def test__verdicts__sources_of_error_and_few_degrees_of_freedom__are_said():
    with_documents = lines(verdicts.section(answer_of(3), None))
    assert "noise of seeds and test documents" in with_documents
    assert "fewer than 6 degrees of freedom against all-attention" in with_documents
    assert "noise of seeds alone" in lines(verdicts.section(answer_of(3, documents=False), None))
    assert "fewer than 6" not in lines(verdicts.section(answer_of(12), None))


def test__verdicts__looks_and_runs_under_way__are_said():
    assert "verdicts 96 % sure together" in lines(verdicts.section(answer_of(4), None))
    second = lines(verdicts.section(answer_of(4, look=2), None))
    assert "99.2 % sure together (answer 2 of this study)" in second
    fifth = lines(verdicts.section(answer_of(4, look=5), None))
    assert "verdicts 99.9936 % sure together (answer 5 of this study)" in fifth
    assert "provisional" not in second
    assert "provisional" in lines(verdicts.section(answer_of(4, state="running"), None))
