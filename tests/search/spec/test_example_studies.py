from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest
import torch

from mixers import count_flops
from mixers.notation import parse_architecture
from search.spec.budget import training_flops
from search.spec.listed import n_trainings, stacks
from search.spec.recall import short_recall
from search.spec.space import Labels
from search.spec.study import StudySpec
from search.spec.study_file import load_study
from search.tasks import build_task

FOLDER = Path(__file__).parents[3] / "examples" / "studies"
FILES = sorted(FOLDER.glob("*.yaml"))
ATTENTION = "attention(rotary=true)"


def codes(name: str) -> list[str]:
    """A listed study's stacks, one letter a layer."""
    letters = {ATTENTION: "A", "sepconv": "S"}
    return ["".join(letters[label] for label in stack) for stack in stacks(study(name))]


def study(name: str) -> StudySpec:
    return load_study(FOLDER / f"{name}.yaml")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test__example_study__loaded__is_valid_and_names_how_it_is_run(file: Path) -> None:
    spec = load_study(file)
    assert spec.task.sizes.vocab_size > 0
    # default.yaml is the file that `search init` writes, whatever its folder.
    where = "study.yaml" if file.stem == "default" else f"examples/studies/{file.name}"
    assert f"search run {where}" in file.read_text(encoding="utf-8")


def test__default__loaded__is_the_study_of_no_file() -> None:
    assert study("default") == StudySpec()


@pytest.mark.parametrize(("name", "seq_len"), [("hybrid", 64), ("hybrid-128", 128)])
def test__hybrid__stacks__first_layers_are_convolutions(name: str, seq_len: int) -> None:
    assert codes(name) == ["AAAA", "SAAA", "SSAA", "SSSA", "SSSS"]
    spec = study(name)
    assert spec.sizes.max_seq_len == seq_len
    assert n_trainings(spec) == 20
    assert spec.training.batch_size * seq_len == 2048


def test__table1__stacks__are_pure_and_rotary_is_apart() -> None:
    found: list[Labels] = list(stacks(study("table1")))
    assert all(len(set(stack)) == 1 and len(stack) == 4 for stack in found)
    kinds = ["average", "bproj", "sepconv", "attention", ATTENTION]
    assert [stack[0] for stack in found] == kinds
    assert n_trainings(study("table1")) == 15


def test__as4__stacks__is_the_whole_table() -> None:
    found = codes("as4")
    assert sorted(found) == sorted(
        {a + b + c + d for a in "AS" for b in "AS" for c in "AS" for d in "AS"}
    )
    assert n_trainings(study("as4")) == 64


def test__mixers4_rate__stacks__hold_each_combination_of_any_three_layers_once() -> None:
    found = list(stacks(study("mixers4-rate")))
    assert found == list(stacks(study("mixers4-recall")))
    whole = set(stacks(study("mixers4")))
    assert len(whole) == 256
    assert whole.issuperset(found)
    for layers in combinations(range(4), 3):
        combined = Counter(tuple(stack[layer] for layer in layers) for stack in found)
        assert (len(combined), set(combined.values())) == (64, {1})


def test__mixers4_rate__settings__differ_in_the_learning_rate_alone() -> None:
    rate, whole = study("mixers4-rate"), study("mixers4")
    rate_training = whole.training.model_copy(update={"learning_rate": 4e-3})
    assert (rate.training, rate.task, rate.encoder) == (rate_training, whole.task, whole.encoder)


def test__mixers4_recall__settings__are_those_of_mqar() -> None:
    recall, mqar = study("mixers4-recall"), study("mqar")
    assert (recall.training, recall.task) == (mqar.training, mqar.task)


def test__mqar__task_and_recipe__are_those_of_the_short_form() -> None:
    spec = study("mqar")
    short = short_recall(spec)
    assert spec.training == short.training
    assert spec.task == short.task.model_copy(update={"test_examples": 1024})
    assert n_trainings(spec) == 30


def n_parameters(spec: StudySpec, stack: Labels) -> int:
    task = build_task(spec.task, seed=0, cache_dir=Path("unused"))
    with torch.device("meta"):
        model = task.build_model(spec.encoder_spec(parse_architecture(", ".join(stack))))
    return sum(parameter.numel() for parameter in model.parameters())


def test__yun2020__stacks__have_the_parameters_of_bert_base_and_of_the_paper() -> None:
    spec = study("yun2020")
    found = list(stacks(spec))
    assert [stack.count("attention(n_heads=12)") for stack in found] == list(range(12, -1, -1))
    # BertForMaskedLM of bert-base-uncased, as transformers counts it, without the two embeddings of
    # sentences, which only the second of BERT's tasks needs.
    assert n_parameters(spec, found[0]) == 109_514_298 - 2 * 768
    # Table 1 of the paper, in millions.
    assert round(n_parameters(spec, found[-1]) / 1e6, 1) == 102.5


def test__yun2020__convolutions__reuse_each_of_16_filters_on_48_features() -> None:
    spec = study("yun2020")
    last = list(stacks(spec))[-1]
    assert set(last) == {"sepconv(kernel_size=128, n_filters=16)"}
    assert spec.encoder.d_model // 16 == 48
    assert (spec.training.steps, spec.training.batch_size, spec.sizes.max_seq_len) == (
        250_000,
        1024,
        512,
    )


def test__yun2020__costs__are_those_that_the_file_names() -> None:
    spec = study("yun2020")
    costs = [
        training_flops(
            count_flops(spec.encoder_spec(parse_architecture(", ".join(stack)))),
            steps=spec.training.steps,
            batch_size=spec.training.batch_size,
        )
        for stack in stacks(spec)
    ]
    n, d = 512, 768
    attention_layer = 2 * n * (4 * d * d + 8 * d * d) + 4 * n * n * d
    assert costs[0] == 3 * 12 * attention_layer * 1024 * 250_000
    said = (FOLDER / "yun2020.yaml").read_text(encoding="utf-8")
    assert all(f"{cost:.1e}".replace("+", "") in said for cost in (costs[0], costs[-1], sum(costs)))
