import pytest
from own_study import loss, own_study, store_url, stored_rows
from simulated import row

import search
from search.rows import Latency
from search.spec.limits import are_within, excesses, limits_of
from search.spec.measures import COSTS, measure_of
from search.spec.study import StudySpec

LATENCY = Latency(
    median=0.02, low=0.01, high=0.03, n=20, batch_size=8, seq_len=16, device="cpu", dtype="float32"
)


def measured(**changes):
    facts = {
        "params": 1_000_000,
        "flops": 200_000_000,
        "latency_s": 0.02,
        "latency": LATENCY,
        "peak_memory": 3_000_000,
    }
    return row(0, ("sepconv",), 1.5, **(facts | changes))


def test__measures__every_cost__reads_its_value_with_unit_and_direction():
    found = {name: (m.value(measured()), m.unit, m.direction) for name, m in COSTS.items()}
    assert found == {
        "params": (1_000_000, "parameters", "minimize"),
        "flops": (200_000_000, "FLOPs", "minimize"),
        "latency": (0.02, "s", "minimize"),
        "throughput": (pytest.approx(8 / 0.02), "sequences/s", "maximize"),
        "peak_memory": (3_000_000, "bytes", "minimize"),
    }
    assert {name for name, m in COSTS.items() if m.is_known_before} == {"params", "flops"}
    assert all(m.value(row(0, ("sepconv",))) is None for m in COSTS.values())


def test__measure_of__metric_of_a_task__is_the_registered_one():
    loss, accuracy = (measure_of(StudySpec(), name) for name in ("loss", "accuracy"))
    assert (loss.unit, loss.direction, loss.value(measured())) == ("nats", "minimize", 1.5)
    assert (accuracy.direction, accuracy.value(measured())) == ("maximize", None)
    assert loss.value(measured(selection={"loss": float("nan")})) is None
    with pytest.raises(ValueError, match="did you mean 'throughput'"):
        measure_of(StudySpec(), "thruput")


def own(*objectives, **task):
    document = own_study(unit="m", direction="maximize").model_dump()
    document["objectives"] = objectives
    document["task"] |= task
    return StudySpec.model_validate(document)


def test__measure_of__own_function__its_metrics_by_name_and_the_counted_costs():
    study = own("score", "error", "latency", "params", directions={"error": "minimize"})
    facts = [(m.name, m.direction, m.unit, m.origin) for m in study.measures]
    assert facts == [
        ("score", "maximize", "m", "metric"),
        ("error", "minimize", "", "metric"),
        ("latency", "minimize", "s", "metric"),
        ("params", "minimize", "parameters", "counted"),
    ]
    assert study.trained_metrics == ("score", "error", "latency")
    read = row(0, ("sepconv",), selection={"latency": 7.0}, latency_s=1.0)
    assert study.measures[2].value(read) == 7.0


def limited(**limits):
    return limits_of(StudySpec.model_validate({"limits": limits}))


@pytest.mark.parametrize(
    ("limits", "excess"),
    [
        ({"max_params": 800_000}, 0.25),
        ({"max_params": 1_000_000}, 0.0),
        ({"max_latency": 0.04}, -0.5),
        ({"min_throughput": 500}, 0.2),
        ({"max_peak_memory": 1e6}, 2.0),
        ({"max_loss": 1.0}, 0.5),
        ({"max_flops": 4e8}, -0.5),
    ],
)
def test__limits__value_beside_its_bound__excess_is_the_share_over_it(limits, excess):
    found = excesses(measured(), limited(**limits))
    assert found == {next(iter(limits)): pytest.approx(excess)}
    assert are_within([measured()], limited(**limits)) == (excess <= 0)


def test__limits__several_or_a_missing_value__within_only_where_all_are_known_to_be_kept():
    both = limited(max_params=2_000_000, max_latency=0.01)
    assert not are_within([measured()], both)
    assert are_within([measured(latency_s=0.01)], both)
    assert excesses(measured(latency_s=None), both) is None
    assert not are_within([measured(latency_s=None)], both)
    assert are_within([row(0, ("sepconv",))], ())
    times = [0.03, 0.009, 0.01]
    assert are_within([measured(latency_s=s) for s in times], both)
    assert not are_within([measured(latency_s=s) for s in times[:2]], both)
    assert excesses(measured(selection={"accuracy": 0.2}), limited(min_accuracy=0.0)) == {
        "min_accuracy": pytest.approx(-0.2)
    }


def judged(objective, folder):
    return search.run(
        {"objectives": ["loss", "energy", "params"], "limits": {"max_peak_memory": 9.0}}
        | {"metrics": ["peak_memory"], "strategy": {"name": "random"}},
        6,
        store_url(folder),
        objective=objective,
        n_layers=2,
        choices=["attention", "sepconv"],
    )


def test__run__own_function_of_several_objectives__all_are_kept_and_limits_decide(tmp_path):
    def measured_twice(architecture, seed, report):
        heavy = architecture.blocks[0].mixer.kind == "attention"
        energy = 2.0 + len(architecture.blocks)
        return {"loss": 1.0 - heavy, "energy": energy, "peak_memory": 10.0 if heavy else 8.0}

    outcome = judged(measured_twice, tmp_path)
    rows = stored_rows(tmp_path, outcome)
    assert all(set(r.selection) == {"loss", "energy", "peak_memory"} for r in rows)
    assert all(r.params > 100_000 for r in rows)
    picks = [r for r in rows if r.role == "pick"]
    # The better loss needs more memory than the limit allows.
    assert picks
    assert all(r.mixers[0].startswith("sepconv") for r in picks)


def test__run__own_function_returns_too_little__failed_trials_name_what_is_missing(tmp_path):
    outcome = judged(loss, tmp_path)
    assert outcome.exit_code == 1
    assert "returned loss but not energy, peak_memory" in outcome.message
