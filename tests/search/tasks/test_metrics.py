import math

import numpy as np
import pytest

from search.errors import InputError
from search.tasks.metrics import Accuracy, Loss, Metric, build_metric, metric_registry


def test__metric_registry__built_ins__units_and_directions() -> None:
    found = {
        name: (metric.unit, metric.direction) for name, metric in metric_registry().usable().items()
    }
    assert found == {"loss": ("nats", "minimize"), "accuracy": ("fraction", "maximize")}
    assert all(isinstance(build_metric(name), Metric) for name in found)
    assert all(build_metric(name).name == name for name in found)


def test__loss__uniform_guess__log_of_the_number_of_choices() -> None:
    nll = np.full(7, math.log(512), dtype=np.float32)
    assert Loss()({"nll": nll}) == pytest.approx(math.log(512), rel=1e-7)


def test__loss__many_float32_values__summed_in_float64() -> None:
    # A float32 running sum of 2^24 + 1 ones stops at 2^24.
    nll = np.ones(2**22, dtype=np.float32) * np.float32(1 + 2**-20)
    assert Loss()({"nll": nll}) == 1 + 2**-20


def test__loss__diverged_model__is_not_hidden() -> None:
    assert math.isnan(Loss()({"nll": np.array([1.0, np.nan])}))


@pytest.mark.parametrize("metric", [Loss(), Accuracy()])
def test__metric__nothing_recorded__refused_rather_than_nan(metric: Metric) -> None:
    with pytest.raises(InputError, match="no targets"):
        metric({"nll": np.array([]), "correct": np.array([], dtype=bool)})
    with pytest.raises(InputError, match="the task records other"):
        metric({"other": np.array([1.0])})
