import hashlib
import json
import re
from itertools import pairwise
from typing import Literal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mixers.builtin.identity import Identity, IdentityConfig
from mixers.config import canonical_json
from mixers.notation import parse_architecture
from mixers.registry import mixer_registry
from search.errors import InputError
from search.spec.study import StudySpec
from search.spec.study_file import load_study, parse_yaml, plain, study_from, with_overrides
from search.spec.study_template import commented_yaml

FIXED = {"task": {"kind": "objective", "name": "f", "source_sha256": "0" * 64}}


def make(*overrides):
    return study_from(with_overrides(FIXED, overrides))


def problems(*overrides):
    with pytest.raises(InputError) as caught:
        make(*overrides)
    return str(caught.value).splitlines()


def test__study_spec__nothing_given__is_the_documented_default():
    study = StudySpec()
    assert study.task.kind == "mlm"
    assert [c.kind for c in study.space.choices] == [
        "attention",
        "sepconv",
        "bproj",
        "average",
        "hardmax_shift",
    ]
    assert study.space.choices[0].rotary is True
    assert (study.objective, study.direction, study.unit) == ("loss", "minimize", "nats")
    assert study.sizes.max_seq_len == study.task.seq_len


def test__study_spec__json_both_ways__is_equal_and_keeps_its_name():
    study = make("space.choices=[attention, 'sepconv(kernel_size=9)']", "training.steps=7")
    again = StudySpec.model_validate_json(canonical_json(study))
    assert again == study
    assert StudySpec.model_validate(study.model_dump()) == study
    assert again.default_name == study.default_name
    digest = hashlib.sha256(canonical_json(study).encode()).hexdigest()[:8]
    assert study.default_name == f"objective-{digest}"


def test__study_spec__documents_of_the_first_schema__keep_name_and_content():
    # Names that the first version gave: its commands go on with its studies.
    assert StudySpec().default_name == "mlm-63a4da60"
    plain_one = {"encoder": {"n_layers": 2}, "seed": 4, "training": {"steps": 10}}
    assert StudySpec.model_validate(plain_one).default_name == "mlm-0b8e9657"
    assert json.loads(canonical_json(make())).keys().isdisjoint({"limits", "match", "recipe"})
    swept = make("match=params", "space.choices=[attention, sepconv]")
    assert json.loads(canonical_json(swept))["match"] == "params"
    assert "causal" not in json.loads(canonical_json(make()))["encoder"]


def test__study_spec__two_ways_to_write_a_choice__are_one_study():
    assert make("space.choices=[attention, sepconv]") == make(
        "space.choices=[{kind: attention, n_heads: 2}, 'sepconv(kernel_size=31, n_filters=8)']"
    )
    assert make("seed=1").default_name != make("seed=2").default_name


def test__causal__mixers_without_a_causal_form__are_refused_by_path():
    lines = problems(
        "encoder.causal=true",
        "space.choices=[attention, fourier]",
        "space.layers=[{layer: 1, choices: [fourier, sepconv]}]",
    )
    paths = ["space.choices.1.fourier", "space.layers.0.choices.0.fourier"]
    assert [line.split(": ")[0] for line in lines] == paths
    assert all("looks ahead" in line for line in lines)


def test__causal__task_of_both_sides__is_refused_and_of_one_side__builds_causal_stacks():
    with pytest.raises(InputError, match=r"^encoder\.causal: task mlm .* from both sides"):
        study_from({"encoder": {"causal": True}})
    study = study_from({"task": "mqar", "encoder": {"causal": True}})
    assert study.encoder_spec(study.space.choices[:2]).causal
    assert not study_from({"task": "mqar"}).encoder_spec(study.space.choices).causal


def test__encoder_spec__mixers_of_any_number__fill_the_template():
    study = make("encoder.d_ff=128", "encoder.norm=post", "task.seq_len=16", "task.vocab_size=99")
    spec = study.encoder_spec(parse_architecture("sepconv, attention"))
    assert (spec.n_layers, spec.code) == (2, "SA")
    assert (spec.vocab_size, spec.max_seq_len, spec.norm) == (99, 16, "post")
    assert {block.d_ff for block in spec.blocks} == {128}


@pytest.mark.parametrize(
    ("override", "path", "hint"),
    [
        ("sede=1", "sede", "did you mean 'seed'"),
        ("training.stpes=3", "training.stpes", "did you mean 'steps'"),
        ("task.nmae=f", "task.objective.nmae", "did you mean 'name'"),
        ("strategy.nmae=tpe", "strategy.nmae", "did you mean 'name'"),
        (
            "space.choices=[{kind: sepconv, kernal_size: 7}]",
            "space.choices.0.sepconv.kernal_size",
            "did you mean 'kernel_size'",
        ),
        (
            "space.layers=[{layer: 0, choice: [attention], choices: [attention]}]",
            "space.layers.0.choice",
            "did you mean 'choices'",
        ),
        ("space.choices=[atention]", "space.choices.0", "did you mean 'attention'"),
        ("strategy.options.n_startup=3", "strategy.options.n_startup", "n_startup_trials"),
        ("strategy.name=tep", "strategy.name", "did you mean 'tpe'"),
        ("objectives=[los]", "objectives.0", "did you mean 'loss'"),
        ("objectives=[loss, latenzy]", "objectives.1", "did you mean 'latency'"),
        ("baselines.cheap=sepcon", "baselines.cheap", "did you mean 'sepconv'"),
        ("encoder.norm=pree", "encoder.norm", "did you mean 'pre'"),
        ("task=mln", "task", "did you mean 'mlm'"),
    ],
)
def test__C26__misspelt_name_anywhere__is_refused_with_full_path_and_nearest_name(
    override, path, hint
):
    document = with_overrides({} if "objectives" in override else FIXED, [override])
    with pytest.raises(InputError) as caught:
        study_from(document)
    lines = [line for line in str(caught.value).splitlines() if line.startswith(f"{path}: ")]
    assert len(lines) == 1
    assert hint in lines[0]


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        (
            ["encoder.d_model=60"],
            r"space\.choices\.1\.sepconv\.n_filters: 8 must divide d_model 60",
        ),
        (
            ["space.choices=[attention, 'sepconv(n_filters=7)']"],
            r"space\.choices\.1\.sepconv\.n_filters: 7 must divide d_model 64",
        ),
        (
            ["space.layers=[{layer: 1, choices: ['sepconv(n_filters=7)']}]"],
            r"space\.layers\.0\.choices\.0\.sepconv\.n_filters: 7 must divide",
        ),
        (["space.layers=[{layer: 4, choices: [attention]}]"], r"space\.layers\.0\.layer: .*0 to 3"),
        (
            ["space.layers=[{layer: 1, choices: [average]}, {layer: 1, choices: [bproj]}]"],
            r"space\.layers\.1\.layer: layer 1 is named twice",
        ),
        (["space.choices=[sepconv, sepconv]"], r"space\.choices\.1: the same choice as number 0"),
        (["space.choices=[]"], r"space\.choices: no mixer to choose from"),
        (["objectives=[params, loss]"], r"objectives\.0: 'params' is a cost; .* put a metric"),
        (["objectives=[loss, flops, loss]"], r"objectives\.2: objective 'loss' is named twice"),
        (["metrics=[loss, loss]"], r"metrics\.1: metric 'loss' is named twice"),
        (["metrics=[flops]"], r"metrics\.0: 'flops' is a cost: every trial records it"),
        (["metrics=[]", "limits.min_accuracy=.3"], r"limits\.min_accuracy: .* add it to metrics"),
        (["limits.max_params=0"], r"limits\.max_params: .*greater than 0"),
        (["baselines.cheap=attention"], r"baselines\.cheap: the same choice as .*reference"),
        (["training.validations=900"], r"training\.validations: 900 readings .* 600 steps"),
        (["encoder.n_layers=1000000000"], r"encoder\.n_layers: .*less than or equal to 10000"),
        (["training.steps=0"], r"training\.steps: .*greater than or equal to 1"),
        (["training.steps=2.5"], r"training\.steps: .*integer"),
        (["training.learning_rate=.inf"], r"training\.learning_rate: .*finite"),
        (["tolerance=-1"], r"tolerance: .*greater than 0"),
        (["seed=true"], r"seed: .*integer"),
        (["strategy.options.n_startup_trials=many"], r".*n_startup_trials: expected int"),
    ],
)
def test__study_spec__parts_that_do_not_fit__are_refused_before_anything_is_spent(
    overrides, expected
):
    assert any(re.match(expected, line) for line in problems(*overrides)), problems(*overrides)


class BrittleConfig(IdentityConfig):
    kind: Literal["local.brittle"] = "local.brittle"
    n_parts: int | None = None

    def resolve(self, *, d_model, max_seq_len):
        raise ZeroDivisionError("no parts")


class Brittle(Identity):
    config_type = BrittleConfig


@pytest.mark.parametrize(
    ("setting", "path"),
    [
        ("space.choices=[attention, local.brittle]", "space.choices.1"),
        ("space.layers=[{layer: 1, choices: [local.brittle]}]", "space.layers.0.choices.0"),
    ],
)
def test__study_spec__plugin_config_that_raises__is_one_line_with_its_path(setting, path):
    mixer_registry.register(Brittle)
    try:
        found = problems(setting)
    finally:
        mixer_registry.unregister("local.brittle")
    assert found == [f"{path}.local.brittle: the mixer's config raised ZeroDivisionError: no parts"]


def test__with_overrides__paths_and_values__are_read_as_yaml():
    document = {"training": {"steps": 5}, "space": {"choices": ["attention", "sepconv"]}}
    settings = [
        "training.learning_rate=2e-3",
        "space.choices.1.kernel_size=9",
        "encoder.bias=no",
        "task.data.source=a=b",
        "metrics=[]",
    ]
    changed = with_overrides(document, settings)
    assert changed == {
        "training": {"steps": 5, "learning_rate": 0.002},
        "space": {"choices": ["attention", {"kind": "sepconv", "kernel_size": 9}]},
        "encoder": {"bias": "no"},  # YAML 1.2: a word
        "task": {"kind": "mlm", "data": {"source": "a=b"}},
        "metrics": [],
    }
    assert document["space"]["choices"][1] == "sepconv"


@pytest.mark.parametrize("setting", ["seed", "=3", "training..steps=1", "seed.x=1", "a=[1"])
def test__with_overrides__malformed_setting__is_refused_by_name(setting):
    with pytest.raises(InputError, match="--set"):
        with_overrides({"seed": 3}, [setting])


def test__load_study__problem_in_a_file__names_file_and_line(tmp_path):
    path = tmp_path / "study.yaml"
    path.write_text("seed: 3\ntraining:\n  steps: 5\n  stpes: 6\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"study\.yaml, line 4: training\.stpes: unknown key"):
        load_study(path)
    assert load_study_text(tmp_path, "seed: 3\n").seed == 3


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("seed: 1\nseed: 2\n", 'line 2, column 1: found duplicate key "seed"'),
        ("training: {steps: [1\n", "line 2"),
        ("- 1\n- 2\n", "a study file is a mapping"),
        ("seed: !!python/object:os.system 1\n", "seed"),
    ],
)
def test__load_study__what_is_no_study__is_one_clear_line(tmp_path, text, expected):
    with pytest.raises(InputError) as caught:
        load_study_text(tmp_path, text)
    assert expected in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test__load_study__missing_binary_and_folder__are_input_errors(tmp_path):
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00\x80")
    for path in (tmp_path / "none.yaml", binary, tmp_path):
        with pytest.raises(InputError, match=re.escape(str(path))):
            load_study(path)


def load_study_text(folder, text):
    path = folder / "text.yaml"
    path.write_text(text, encoding="utf-8")
    return load_study(path)


STUDIES = st.fixed_dictionaries(
    {},
    optional={
        "training": st.fixed_dictionaries(
            {},
            optional={
                "learning_rate": st.floats(1e-6, 1.0),
                "steps": st.integers(6, 10**6),
                "precision": st.sampled_from(["auto", "32", "bf16"]),
            },
        ),
        "space": st.sampled_from(
            [
                {"choices": ["attention", "sepconv"]},
                {"choices": ["sepconv(kernel_size=9)", "attention(rotary=true)", "bproj"]},
                {
                    "choices": ["attention", "average"],
                    "layers": [{"layer": 2, "choices": ["sepconv(n_filters=4)", "identity"]}],
                },
            ]
        ),
        "strategy": st.sampled_from(
            [{"name": "random"}, {"name": "tpe", "options": {"n_startup_trials": 4}}]
        ),
        "encoder": st.fixed_dictionaries(
            {},
            optional={
                "dropout": st.floats(0, 0.9),
                "n_layers": st.integers(3, 9),
                "activation": st.sampled_from(
                    ["gelu", {"breakpoints": [0.0], "slopes": [0.0, 1.0], "intercepts": [0, 0.5]}]
                ),
            },
        ),
        "tolerance": st.floats(1e-9, 1e9),
        "seed": st.integers(0, 2**31 - 1),
    },
)


@settings(max_examples=40, deadline=None)
@given(document=STUDIES, unit=st.text(max_size=5))
@example(document={}, unit="\x85")
@example(document={}, unit="\u2028a\ufeff")
def test__commented_yaml__any_study__reads_back_as_the_same_study(document, unit):
    study = study_from(FIXED | {"task": FIXED["task"] | {"unit": unit}} | document)
    text = commented_yaml(study)
    assert study_from(plain(parse_yaml(text))) == study
    assert all(len(line) <= 100 for line in text.splitlines() if line.lstrip().startswith("#"))


def test__commented_yaml__default_study__explains_every_setting():
    text = commented_yaml(StudySpec())
    assert study_from(plain(parse_yaml(text))) == StudySpec()
    lines = text.splitlines()
    settings_without_comment = [
        line
        for before, line in pairwise(lines)
        if re.match(r" *\w+:", line) and not before.lstrip().startswith("#") and "kind:" not in line
    ]
    assert settings_without_comment == []


def test__json_schema__of_a_study__names_plugins_and_describes_fields():
    schema = StudySpec.model_json_schema()
    text = json.dumps(schema)
    assert "hardmax_shift" in text
    assert "objective" in text
    assert schema["properties"]["seed"]["description"].startswith("Seed of the study")
    assert schema["additionalProperties"] is False
