"""What was trained compiled goes on uncompiled, and the other way round."""

import pytest
import torch
from fault_trials import faults_installed
from safetensors.torch import load_file

import mixers
from mixers.folder import save
from mixers.notation import parse_architecture
from search.messages import CheckpointPlan, TrialConfig
from search.spec.study import StudySpec
from search.training import compiling
from search.training.environment import COMPILED
from search.training.trial import run_trial

pytestmark = pytest.mark.filterwarnings("ignore")  # the compiler's own
CLOSE = {"atol": 1e-9, "rtol": 0}


@pytest.fixture(scope="module", autouse=True)
def forget_what_was_compiled():
    yield
    torch.compiler.reset()


def plain(seed=0):
    spec = mixers.EncoderSpec.of(
        "attention, sepconv", d_ff=16, d_model=16, max_seq_len=8, vocab_size=10
    )
    torch.manual_seed(seed)
    # In float32, AdamW's first steps would blow up what rounding makes of gradients that are zero.
    return mixers.Encoder(spec).double()


def wrapped(seed=0):
    return torch.compile(plain(seed), backend="aot_eager")


def in_place(seed=0):
    encoder = plain(seed)
    encoder.compile(backend="aot_eager")
    return encoder


def step(encoder, optimizer, ids):
    encoder(ids).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()


def optimizer_of(encoder):
    return torch.optim.AdamW(encoder.parameters(), lr=1e-2)


@pytest.mark.parametrize(("before", "after"), [(in_place, plain), (plain, in_place)])
def test__C34__training__goes_on_with_the_other_setting_as_if_nothing_had_changed(before, after):
    ids = torch.arange(8)[None]
    whole = plain()
    optimizer = optimizer_of(whole)
    for _ in range(4):
        step(whole, optimizer, ids)

    first = before()
    optimizer = optimizer_of(first)
    for _ in range(2):
        step(first, optimizer, ids)
    second = after(seed=1)
    second.load_state_dict(first.state_dict())
    again = optimizer_of(second)
    again.load_state_dict(optimizer.state_dict())
    for _ in range(2):
        step(second, again, ids)
    torch.testing.assert_close(second(ids.flip(1)), whole(ids.flip(1)), **CLOSE)


@pytest.mark.parametrize("compiled", [wrapped, in_place])
def test__C34__compiled_encoder__is_saved_under_plain_names_and_loads_uncompiled(
    compiled, tmp_path
):
    encoder = compiled()
    save(encoder, tmp_path)
    assert set(load_file(tmp_path / "model.safetensors")) == set(plain().state_dict())
    ids = torch.arange(8).flip(0)[None]
    torch.testing.assert_close(mixers.load(tmp_path)(ids), encoder(ids), **CLOSE)


def trained(folder, *, compile_, until=None, checkpoints=None):
    study = StudySpec.model_validate(
        {
            "task": {"kind": "faults.copy"},
            "encoder": {"d_model": 16, "n_layers": 2, "d_ff": 16, "dropout": 0.1},
            "space": {"choices": ["attention", "sepconv"]},
            "training": {"steps": 8, "batch_size": 4, "validations": 2},
            "rungs": [4],
        }
    )
    plan = checkpoints and CheckpointPlan(folder=str(checkpoints), every_s=3600.0, key="k")
    config = TrialConfig(
        study=study,
        spec=study.encoder_spec(parse_architecture("attention, sepconv")),
        seed=0,
        cache_dir=str(folder),
        checkpoints=plan,
        until=until,
        compile=compile_,
    )
    return run_trial(config, report=lambda message: None, should_stop=lambda: None)


@pytest.fixture(scope="module")
def faults(tmp_path_factory):
    with faults_installed(tmp_path_factory.mktemp("faults")) as folder:
        yield folder


@pytest.fixture
def n_compiled(monkeypatch):
    """How many graphs were compiled, in a backend that every machine has."""
    from torch._dynamo.backends.debugging import aot_eager

    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return aot_eager(graph, inputs)

    monkeypatch.setattr(compiling, "BACKEND", backend)
    return lambda: len(graphs)


@pytest.mark.parametrize("first", [True, False])
def test__C34__trial__begun_compiled_or_not_ends_the_other_way_with_the_same_loss(
    faults, tmp_path, n_compiled, first
):
    cut = trained(faults, compile_=first, until=4, checkpoints=tmp_path)
    before = n_compiled()
    assert (cut.outcome, before > 0) == ("pruned", first)
    ended = trained(faults, compile_=not first, checkpoints=tmp_path)
    assert (ended.outcome, ended.resumed_step) == ("completed", 4)
    assert (n_compiled() > before) is not first
    whole = trained(faults, compile_=False)
    for name, value in whole.evaluations["selection"].items():
        assert ended.evaluations["selection"][name] == pytest.approx(value, abs=1e-4)
    for result, compiled in ((cut, first), (ended, not first), (whole, False)):
        assert (COMPILED in result.environment) is compiled
        assert result.costs.step_s is None or ("compiled" in result.costs.step_s.dtype) is compiled
