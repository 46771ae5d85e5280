"""Names, local registration, suggestions, and a registry of something that is no mixer."""

import sys
from abc import ABC, abstractmethod
from typing import Annotated, ClassVar, Literal

import pytest
import torch
from plugin_packages import ok, run_python
from pydantic import TypeAdapter, ValidationError

import mixers
from mixers.config import FrozenModel
from mixers.errors import BrokenPluginError, UnknownMixerError
from mixers.explain import explain
from mixers.registry import Registry, fold, mixer_registry, nearest, source_version
from mixers.spec import EncoderSpec
from mixers.union import RegistryUnion

SIZES = {"vocab_size": 9, "d_model": 16, "max_seq_len": 8}


class PlainConfig(mixers.MixerConfig):
    kind: Literal["local.plain"] = "local.plain"
    width: int = 1


class Plain(mixers.TokenMixer[PlainConfig]):
    config_type: ClassVar[type[mixers.MixerConfig]] = PlainConfig

    @classmethod
    def traits(cls, config):
        return mixers.MixerTraits(
            reach=0, linear=True, position_aware=False, causal=True, fixed_length=False,
            cost="n", source="a test",
        )  # fmt: skip

    @classmethod
    def flops(cls, config, *, d_model, seq_len):
        return 0

    def forward(self, x, mask=None):
        return torch.zeros_like(x)


@pytest.fixture
def plain():
    yield mixers.register(Plain)
    mixer_registry.unregister("local.plain")


def test__register__late__specs_know_it_at_once(plain):
    spec = EncoderSpec.of("local.plain(width=3), average", d_ff=1, **SIZES)
    assert spec.blocks[0].mixer == PlainConfig(width=3)
    assert EncoderSpec.model_validate_json(spec.model_dump_json()) == spec
    assert "local.plain" in str(EncoderSpec.model_json_schema())
    info = mixers.available()["local.plain"]
    assert (info.distribution, info.symbol, info.broken) == ("local", "?", None)
    assert info.version == source_version(Plain)
    assert info.version.startswith("sha256:")
    assert len(info.version) == 7 + 64


def test__unregister__specs_forget_it(plain):
    mixer_registry.unregister("local.plain")
    with pytest.raises(mixers.SpecError, match=r"unknown kind 'local\.plain'"):
        mixers.parse_architecture("local.plain")


def test__register__same_name_again__replaces_and_changes_the_version(plain):
    class Other(Plain):
        def forward(self, x, mask=None):
            return x * 0

    before = mixer_registry.get("local.plain").version
    mixers.register(Other)
    entry = mixer_registry.get("local.plain")
    assert entry.plugin is Other
    assert entry.version != before


def test__register__name_that_differs_in_case__is_refused(plain):
    class UpperConfig(mixers.MixerConfig):
        kind: Literal["local.Plain"] = "local.Plain"

    class Upper(Plain):
        config_type = UpperConfig

    with pytest.raises(mixers.MixerError, match=r"differs from 'local\.plain' only in case"):
        mixers.register(Upper)


@pytest.mark.parametrize("name", ["attention", "plain", "acme.plain", "local.", "local.a b"])
def test__register__name_of_another_form__is_refused(name):
    class OddConfig(mixers.MixerConfig):
        kind: Literal[name] = name

    class Odd(Plain):
        config_type = OddConfig

    with pytest.raises(mixers.MixerError, match=r"local\.<name>"):
        mixers.register(Odd)


def test__register__class_without_forward__says_what_it_lacks():
    class NothingConfig(mixers.MixerConfig):
        kind: Literal["local.nothing"] = "local.nothing"

    class Nothing(mixers.TokenMixer[NothingConfig]):
        config_type = NothingConfig

    with pytest.raises(mixers.MixerError, match="Nothing lacks flops, forward, traits"):
        mixers.register(Nothing)


def test__class_creation__without_config_or_with_a_long_symbol__fails_at_once():
    with pytest.raises(TypeError, match="needs a class attribute config_type"):

        class NoConfig(mixers.TokenMixer[PlainConfig]):
            pass

    with pytest.raises(TypeError, match="Literal of one name"):

        class Loose(mixers.TokenMixer[mixers.MixerConfig]):
            config_type = mixers.MixerConfig

    for unfit in ("long", "", " ", "\n", 7):
        with pytest.raises(TypeError, match="one visible character, not"):
            type("Unfit", (Plain,), {"symbol": unfit})


def test__source_version__without_source__still_tells_code_apart():
    made = {}
    template = "class Made:\n    def forward(self, x):\n        return x + {}\n"
    for name, number in (("first", 1), ("again", 1), ("other", 2)):
        scope = {"__name__": "nowhere"}
        exec(template.format(number), scope)
        made[name] = source_version(scope["Made"])
    assert made["first"] == made["again"] != made["other"]


@pytest.mark.parametrize(
    ("name", "hit"),
    [
        ("atention", "attention"),
        ("SepConv", "sepconv"),
        ("fnet", "acme.fnet"),
        ("acme.fnt", "acme.fnet"),
        ("zzz", None),
    ],
)
def test__nearest__finds_what_was_meant(name, hit):
    assert nearest(name, ["attention", "sepconv", "acme.fnet"]) == hit


def test__fold__compares_names_as_package_indexes_do():
    assert fold("Acme_Mixers.FNet") == fold("acme-mixers.fnet") != fold("acme.mixers.fnet2")
    assert fold("Attention") == fold("attention")


def test__build__bad_config__one_line_with_the_way_out():
    with pytest.raises(mixers.SpecError) as caught:
        mixers.build({"kind": "sepconv", "kernal_size": 3}, d_model=16, max_seq_len=8)
    assert str(caught.value).startswith("sepconv.kernal_size: unknown key 'kernal_size'; did you")
    with pytest.raises(UnknownMixerError, match="unknown mixer 'sepcon'; did you mean 'sepconv'"):
        mixers.build("sepcon", d_model=16, max_seq_len=8)
    with pytest.raises(mixers.SpecError, match=r"sepconv\.n_filters: 8 must divide d_model 20"):
        mixers.build("sepconv", d_model=20, max_seq_len=8)


def test__spec__plugin_config_that_raises__is_one_line_with_its_path(plain):
    class RaisingConfig(PlainConfig):
        def conflicts(self, *, d_model, max_seq_len):
            raise ZeroDivisionError("no width")

    class Raising(Plain):
        config_type = RaisingConfig

    mixers.register(Raising)
    with pytest.raises(ValidationError) as caught:
        EncoderSpec.of("average, local.plain", d_ff=1, **SIZES)
    assert explain(caught.value, EncoderSpec) == [
        "blocks.1.mixer.local.plain: the mixer's config raised ZeroDivisionError: no width"
    ]


class Task(ABC):
    """A contract of another group."""

    @abstractmethod
    def run(self) -> int: ...


class CountConfig(FrozenModel):
    kind: Literal["local.count"] = "local.count"
    upto: int = 3


class Count(Task):
    config_type = CountConfig

    def run(self):
        return 3


class UnknownTaskError(ValueError):
    pass


@pytest.fixture
def tasks():
    return Registry(
        "no.such.group", contract=lambda: Task, noun="task", unknown_error=UnknownTaskError
    )


def test__registry__of_other_things__serves_them_too(tasks):
    with pytest.raises(UnknownTaskError, match="unknown task 'x'; known: none"):
        tasks.get("x")
    tasks.register(Count)
    adapter = TypeAdapter(Annotated[FrozenModel, RegistryUnion(tasks)])
    assert adapter.validate_python("local.count") == CountConfig()
    assert adapter.validate_json('{"kind": "local.count", "upto": 9}') == CountConfig(upto=9)
    assert adapter.json_schema()["anyOf"][1] == {"enum": ["local.count"], "type": "string"}


def test__registry__plugin_without_config__is_named_when_registered(tasks):
    class Bare(Task):
        def run(self):
            return 1

    with pytest.raises(mixers.MixerError, match="needs a name"):
        tasks.register(Bare)
    assert tasks.register(Bare, "local.bare") is Bare
    assert tasks.load("local.bare") is Bare


def test__discovery__warning_as_error__is_kept_all_the_same(tmp_path, monkeypatch):
    from plugin_packages import lay_out

    site = lay_out("twin_b", tmp_path / "site")
    monkeypatch.syspath_prepend(str(site))
    registry = Registry("mixers.v1", contract=mixer_registry.contract, noun="mixer")
    with pytest.raises(UserWarning, match=r"'sepconv2' of package twin-b 1\.2\.3"):
        registry.entries()
    assert "attention" in registry.usable()
    with pytest.raises(BrokenPluginError, match="bare names are reserved"):
        registry.get("sepconv2")


def test__import__costs_no_torch_before_first_use():
    code = """
import sys
import mixers, mixers.spec, mixers.registry
assert "torch" not in sys.modules
assert set(mixers.__all__) == set(dir(mixers))
for name in mixers.__all__:
    getattr(mixers, name)
assert "torch" in sys.modules
for heavy in ("optuna", "pytorch_lightning", "sqlalchemy", "fastapi", "typer", "pytest"):
    assert heavy not in sys.modules, heavy
"""
    ok(run_python(code))
    assert sys.modules["mixers"] is mixers
