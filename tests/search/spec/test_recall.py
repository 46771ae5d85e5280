import pytest

from search.errors import InputError
from search.spec.listed import n_trainings
from search.spec.recall import SOLVED, TASK, TRAINING, short_recall
from search.spec.study import StudySpec
from search.spec.study_file import study_from


def study_with(**sections: object) -> StudySpec:
    return study_from(sections)


def test__short_recall__default_study__its_choices_with_the_reference_first() -> None:
    study = StudySpec()
    short = short_recall(study)
    assert short.space.architectures == (
        "attention(rotary=true)*4",
        "sepconv*4",
        "bproj*4",
        "average*4",
        "hardmax_shift*4",
    )
    assert short.encoder == study.encoder
    assert short.task.model_dump(include=set(TASK)) == TASK
    assert short.training.model_dump(include=set(TRAINING)) == TRAINING
    assert n_trainings(short_recall(study, seeds=3)) == 15


def test__short_recall__given_architectures__each_once_beside_the_reference() -> None:
    study = study_with(baselines={"reference": "sepconv", "cheap": "average"}, seed=5)
    wanted = [("sepconv",) * 4, ("bproj", "sepconv"), ("bproj", "sepconv")]
    short = short_recall(study, wanted)
    assert short.space.architectures == ("sepconv*4", "bproj, sepconv")
    assert short.baselines.reference == "sepconv"
    assert short.seed == 5


def test__short_recall__what_limits_cost_and_recipe__is_left_out() -> None:
    study = study_with(
        limits={"max_params": 5e6},
        match="params",
        recipe="sweep",
        objectives=["loss", "latency"],
        space={"layers": [{"layer": 0, "choices": ["bproj"]}]},
    )
    short = short_recall(study)
    assert short.limits == StudySpec().limits
    assert (short.match, short.recipe, short.recall) == ("none", "shared", False)
    assert (short.objectives, short.trained_metrics) == (("loss",), ("loss", "accuracy"))


def test__short_recall__two_studies_that_differ_in_their_text__one_short_form() -> None:
    one = study_with(task={"kind": "mlm", "seq_len": 32}, training={"steps": 50})
    assert short_recall(one) == short_recall(StudySpec())


def test__short_recall__mixer_that_does_not_fit__one_line_names_it() -> None:
    with pytest.raises(InputError, match="n_filters") as caught:
        short_recall(StudySpec(), [("sepconv(n_filters=7)",)])
    assert "\n" not in str(caught.value)


def test__solved__threshold__lies_above_guessing_among_the_values() -> None:
    assert 1 / TASK["n_pairs"] < 0.5 < SOLVED < 1.0
