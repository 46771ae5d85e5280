import random
import re

import numpy as np
import pytest
import torch
from fault_trials import trial_config

from mixers import count_flops, count_parameters
from search.errors import InputError
from search.messages import Report, TrialConfig, TrialFailure, TrialResult
from search.training.prepared import SHARED
from search.training.trial import attempt, run_trial, time_steps


def run(config, *, should_stop=lambda: None):
    messages = []
    result = run_trial(config, report=messages.append, should_stop=should_stop)
    return result, [message for message in messages if isinstance(message, Report)]


def test__run_trial__completed__holds_everything_a_row_needs(faults):
    config = trial_config(faults, splits=("train", "selection", "test"))
    result, reports = run(config)
    assert (result.outcome, result.reason) == ("completed", "")
    assert (result.steps, result.sequences) == (8, 32)
    assert [(report.step, report.split) for report in reports] == [
        (4, "train"),
        (4, "selection"),
        (8, "train"),
        (8, "selection"),
    ]
    assert list(result.evaluations) == ["train", "selection", "test"]
    assert result.evaluations["selection"] == reports[-1].metrics
    assert set(result.evaluations["test"]) == {"loss", "accuracy"}
    assert result.costs.params == count_parameters(config.spec)
    assert result.costs.flops == count_flops(config.spec)
    assert result.costs.step_s.n == 8 - 4
    assert (result.costs.latency_s.batch_size, result.costs.latency_s.seq_len) == (4, 16)
    assert result.costs.peak_memory_bytes > 2**26
    assert [reading.when for reading in result.probes] == ["init", "final"]
    assert result.probes[0].readings["probe"] > 0
    assert [layer.kind for layer in result.proof.layers] == ["faults.trap", "identity"]
    assert result.proof.layers[0].distribution == "faults"
    assert result.environment["seed"] == "0"
    assert sum(result.stages.values()) <= result.seconds


def test__run_trial__same_seed_twice_and_another__equal_and_different(faults):
    results = [run(trial_config(faults, seed=seed, p=0.1))[0] for seed in (4, 4, 5)]
    first, again, other = (result.evaluations["selection"]["loss"] for result in results)
    assert first == again
    assert first != other
    assert results[0].probes[1].readings == results[1].probes[1].readings


def test__run_trial__dropout__does_not_depend_on_what_initialisation_drew(faults, monkeypatch):
    drawn = []
    original = torch.nn.Dropout.forward

    def spy(module, x):
        if module.training and not drawn:
            drawn.append(torch.random.get_rng_state())
        return original(module, x)

    states = []
    monkeypatch.setattr(torch.nn.Dropout, "forward", spy)
    for layers in (1, 2):
        config = trial_config(faults, p=0.1)
        spec = config.spec.model_copy(update={"blocks": config.spec.blocks[:1] * layers})
        drawn.clear()
        run(config.model_copy(update={"spec": spec}))
        states.append(drawn[0])
    assert torch.equal(*states)


def test__run_trial__afterwards__global_states_are_the_callers(faults):
    torch.manual_seed(1)
    random.seed(1)
    np.random.seed(1)
    threads = torch.get_num_threads()
    before = torch.random.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()
    run(trial_config(faults, p=0.1, threads=threads + 1))
    after = torch.random.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()
    assert torch.equal(before[0], after[0])
    assert before[1:] == after[1:]
    assert torch.get_num_threads() == threads


def test__run_trial__second_trial_of_a_study__prepares_nothing(faults):
    SHARED.clear()
    first = run(trial_config(faults))[0]
    (faults / "prepared").unlink()
    second = run(trial_config(faults, seed=9))[0]
    assert not (faults / "prepared").exists()
    assert first.outcome == second.outcome == "completed"


@pytest.mark.parametrize("after", [0, 5])
def test__run_trial__stopped__keeps_steps_readings_and_the_reason(faults, after):
    polls = iter([None] * after + ["time is up"])
    result, reports = run(trial_config(faults), should_stop=lambda: next(polls))
    assert (result.outcome, result.reason, result.steps) == ("stopped", "time is up", after)
    assert result.evaluations == ({"selection": reports[-1].metrics} if after else {})
    assert result.costs.latency_s is None
    assert result.costs.params > 0
    assert result.proof is not None


def test__C41__run_trial__nan_in_the_loss__diverged_with_the_step_and_only_finite_numbers(faults):
    result, reports = run(trial_config(faults, "nan", at=6))
    assert result.outcome == "diverged"
    assert result.reason == "the training loss is nan at step 6"
    assert [report.step for report in reports] == [4, 4]
    assert result.evaluations == {"selection": reports[-1].metrics}
    assert result.proof is None
    assert TrialResult.model_validate_json(result.model_dump_json()) == result


def test__C41__run_trial__metric_not_finite_on_test__diverged(faults, monkeypatch):
    from search.tasks import evaluation

    original = evaluation.collect_records

    def poisoned(task, model, split, *rest):
        found = original(task, model, split, *rest)
        return found | {"nll": found["nll"] + float("inf")} if split == "test" else found

    monkeypatch.setattr("search.training.trial.collect_records", poisoned)
    result, _ = run(trial_config(faults, splits=("selection", "test")))
    assert (result.outcome, result.reason) == ("diverged", "loss on test is inf after the training")
    assert list(result.evaluations) == ["selection"]


def test__run_trial__swapped_mixer__fails_the_proof(faults, monkeypatch):
    from mixers.builtin.identity import Identity, IdentityConfig

    monkeypatch.setattr(
        "mixers.model.build_mixer",
        lambda config, **sizes: Identity(IdentityConfig(), **sizes),
    )
    outcome = attempt(trial_config(faults), report=lambda m: None, should_stop=lambda: None)
    assert isinstance(outcome, TrialFailure)
    assert outcome.cause == "proof"
    assert outcome.message.startswith("layer 0 should run faults.trap")


@pytest.mark.parametrize(
    ("fault", "cause", "message"),
    [
        ("raises", "error", r"RuntimeError in faults\.py:\d+: no such filter"),
        ("memory", "out_of_memory", r"can't allocate memory"),
        ("memory_error", "out_of_memory", r"MemoryError in faults\.py:\d+"),
        ("exits", "error", r"tried to exit \(SystemExit: 3\)"),
    ],
)
def test__C44__attempt__fault_in_a_mixer__cause_one_line_and_traceback(
    faults, fault, cause, message
):
    outcome = attempt(trial_config(faults, fault), report=lambda m: None, should_stop=lambda: None)
    assert isinstance(outcome, TrialFailure)
    assert outcome.cause == cause
    assert re.search(message, outcome.message)
    assert "in forward" in outcome.traceback


def test__attempt__ctrl_c__is_not_a_failure_of_the_trial(faults):
    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        attempt(trial_config(faults), report=lambda m: None, should_stop=interrupt)


def test__run_trial__device_that_is_not_there__refused_before_any_work(faults):
    config = trial_config(faults, device="cuda:0")
    if torch.cuda.is_available():
        pytest.skip("this machine has the device")
    with pytest.raises(InputError, match="torch cannot use it here"):
        run(config)


def test__trial_config__json_round_trip__equal_with_plugin_fields(faults):
    config = trial_config(faults, "raises", at=7, splits=("test",))
    again = TrialConfig.model_validate_json(config.model_dump_json())
    assert again == config
    assert again.spec.blocks[0].mixer.at == 7
    assert again.spec.arch_id == config.spec.arch_id


def test__time_steps__few_steps__times_and_memory(faults):
    plan = time_steps(trial_config(faults), 6)
    assert min(plan.step_s, plan.evaluation_s, plan.rest_s) > 0
    assert plan.peak_memory_bytes > 2**26
