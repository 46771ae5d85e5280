"""The kit passes every built-in mixer, catches every planted fault and every flipped claim."""

import shutil
import warnings
from functools import cache

import pytest
import torch
from faults_out_of_sight import OUT_OF_SIGHT
from faulty_mixers import FAULTS as IN_SIGHT
from faulty_mixers import Honest

import mixers
from mixers.catalogue import mixer_config
from mixers.conformance import CHECKS, Subject
from mixers.errors import ConformanceError
from mixers.registry import mixer_registry
from mixers.testing import check_mixer, checks, parametrize_with_checks

FAULTS = IN_SIGHT | OUT_OF_SIGHT
CONFIGS = {
    "attention": [{}, {"n_heads": 4}, {"rotary": True}],
    "average": [{}],
    "bproj": [{}],
    "hardmax_shift": [{}, {"rule": "sign"}, {"n_heads": 2}],
    "identity": [{}],
    "dynamicconv": [{}, {"kernel_size": 4, "n_heads": 2}],
    "fourier": [{}, {"orthonormal": False}],
    "lightconv": [{}, {"kernel_size": 4, "n_heads": 16}],
    "sparse_attention": [
        {},
        {"width": 2, "rotary": True},
        {"pattern": "strided", "width": 3},
        {"pattern": "strided", "width": 3, "combination": "multihead", "n_heads": 2},
        {"pattern": "strided", "width": 3, "combination": "first"},
        {"pattern": "fixed", "width": 4},
        {"pattern": "fixed", "width": 4, "combination": "first"},
        {"pattern": "fixed", "width": 4, "combination": "second"},
        {"pattern": "star"},
        {"pattern": "random", "width": 3, "seed": 4},
    ],
    "sepconv": [
        {},
        {"kernel_size": 1},
        {"kernel_size": 4, "n_filters": 2},
        {"kernel_size": 9, "n_filters": 16},
    ],
}


def every_check():
    return [check for kind, configs in CONFIGS.items() for check in checks(kind, configs)]


def test__configs__cover_every_built_in_kind():
    built_in = {k for k, info in mixers.available().items() if info.distribution == "mixsearch"}
    assert built_in == set(CONFIGS)


def is_quick(check):
    """Compiling takes more than a second: here the defaults only, all the others when slow."""
    return check.name != "compiled" or check.subject.label == check.subject.kind


@pytest.mark.parametrize(
    "check",
    [
        pytest.param(check, id=str(check), marks=() if is_quick(check) else pytest.mark.slow)
        for check in every_check()
    ],
)
def test__built_in__keeps_its_claim(check):
    check()


def test__honest_mixer__passes_every_check():
    assert len(check_mixer(Honest)) == len(CHECKS)


def test__placement__mixer_that_asks_for_a_value__passes():
    class SkipsFullMask(Honest):
        def forward(self, x, mask=None):
            return super().forward(x, None if mask is not None and mask.all() else mask)

    [check] = (check for check in checks(SkipsFullMask) if check.name == "placement")
    check()


@pytest.mark.parametrize("faulty", FAULTS, ids=lambda faulty: faulty.__name__)
def test__planted_fault__is_caught_by_its_check_and_by_no_other_unexplained(faulty):
    meant = FAULTS[faulty][0]
    failed = failures(faulty, set(CHECKS) - {"compiled"} | {meant})
    assert set(failed) - {"compiled"} == set(FAULTS[faulty]) - {"compiled"}
    error = failed[meant]
    assert error.claim
    assert error.measured
    assert error.counterexample
    assert str(error).startswith(f"{error.kind}: claim: {error.claim}; measured: ")


@pytest.mark.slow
@pytest.mark.parametrize("faulty", FAULTS, ids=lambda faulty: faulty.__name__)
def test__planted_fault__compiled__fails_where_it_should(faulty):
    assert set(failures(faulty, {"compiled"})) == set(FAULTS[faulty]) & {"compiled"}


def failures(faulty, names):
    failed = {}
    for check in checks(faulty):
        if check.name in names:
            try:
                check()
            except ConformanceError as error:
                failed[check.name] = error
    return failed


def test__planted_faults__cover_every_check():
    meant = {checks_of_it[0] for checks_of_it in FAULTS.values()}
    assert meant == set(CHECKS)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # the compiler's own
@pytest.mark.parametrize(
    "kind", [*sorted(CONFIGS.keys() - {"identity"}), "sepconv(kernel_size=200)"]
)
def test__built_in__compiled__is_one_graph_forward_and_backward(kind):
    (config,) = mixers.parse_architecture(kind)
    mixer = mixers.build(config, d_model=16, max_seq_len=200)
    x = torch.randn(2, 200, 16, requires_grad=True)
    mask = torch.arange(200) < torch.tensor([[200], [70]])
    whole = torch.compile(mixer, backend="aot_eager", fullgraph=True)
    for real in (None, mask):
        out, wanted = whole(x, real), mixer(x, real)
        torch.testing.assert_close(out, wanted, atol=2e-6, rtol=1e-5)
        torch.testing.assert_close(
            torch.autograd.grad(out.square().sum(), x),
            torch.autograd.grad(wanted.square().sum(), x),
            atol=1e-5,
            rtol=1e-4,
        )
    torch.compiler.reset()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("c++") is None, reason="inductor needs a C++ compiler")
@pytest.mark.parametrize("kind", CONFIGS)
def test__built_in__compiled_with_inductor__equals_eager(kind):
    mixer = Subject(mixer_registry.load(kind), mixer_config(kind), 16, 12).build().float()
    x = torch.randn(2, 12, 16)
    mask = torch.arange(12) < torch.tensor([[12], [7]])
    wanted = mixer(x, mask)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the compiler's own
        got = torch.compile(mixer)(x, mask)
    torch.compiler.reset()
    # Float32 sums of a few dozen products in another order.
    torch.testing.assert_close(got[mask], wanted[mask], atol=2e-6, rtol=1e-5)


@parametrize_with_checks("average")
def test__parametrize_with_checks__gives_one_test_per_check(check):
    assert check.name in CHECKS
    assert check.subject.kind == "average"


# Not among them: causal, since disclaiming what one could do is no false claim. The planted faults
# cover it.
FLIPS = [
    ("reach", "global", "reach"),
    ("reach", 2, "reach"),
    ("linear", None, "linear"),
    ("position_aware", None, "position_aware"),
    ("fixed_length", None, "fixed_length"),
    ("surrogate_gradient", None, "derivative"),
    ("cost", "n", "cost"),
    ("cost", "n log n", "cost"),
    ("cost", "n^2", "cost"),
]


@cache
def flipped(kind, trait, value):
    """Return (class with one claim changed, config), or None if that is no change."""
    mixer_type, config = mixer_registry.load(kind), mixer_config(kind)
    true_value = getattr(mixer_type.traits(config), trait)
    false_value = (not true_value) if value is None else value
    if false_value == true_value or (kind == "identity" and trait == "cost"):
        return None  # zero FLOPs grow like anything

    class Liar(mixer_type):
        @classmethod
        def traits(cls, config):
            return mixer_type.traits(config).model_copy(update={trait: false_value})

    return Liar, config


@pytest.mark.parametrize(
    ("kind", "trait", "value", "check"),
    [
        (kind, trait, value, check)
        for kind in CONFIGS
        for trait, value, check in FLIPS
        if flipped(kind, trait, value) is not None
    ],
)
def test__flipped_claim__is_caught(kind, trait, value, check):
    liar, config = flipped(kind, trait, value)
    with pytest.raises(ConformanceError):
        CHECKS[check](Subject(liar, config, 16, 12))


def test__expected_failure__that_fails__is_accepted():
    from faulty_mixers import UnusedParameter

    check_mixer(
        UnusedParameter, expected_failures={"every_parameter_gets_gradient": "kept for a test"}
    )


def test__expected_failure__that_passes__is_an_error():
    with pytest.raises(ConformanceError, match="take it out of expected_failures"):
        check_mixer("average", expected_failures={"linear": "an outdated reason"})


def test__expected_failure__of_no_check__names_the_checks():
    with pytest.raises(mixers.MixerError, match="no check is called 'linaer'"):
        check_mixer("average", expected_failures={"linaer": "x"})


def test__unknown_kind__suggests_the_nearest():
    with pytest.raises(mixers.UnknownMixerError, match="did you mean 'sepconv'"):
        check_mixer("sepcnv")


def test__error_in_the_mixer__names_the_line_that_raised():
    from faulty_mixers import Raises

    with pytest.raises(ConformanceError) as caught:
        check_mixer(Raises)
    assert caught.value.measured == "RuntimeError: out of luck"
    line = Raises.forward.__code__.co_firstlineno + 1
    assert caught.value.counterexample == f"raised in forward at faulty_mixers.py, line {line}"


def test__connections_of_another_shape__are_named_with_both_shapes():
    class Flat(Honest):
        @classmethod
        def connections(cls, config, *, seq_len, causal=False):
            return torch.ones(seq_len)

    with pytest.raises(ConformanceError, match=r"must give a \(12, 12\) bool tensor, got \(12,\)"):
        check_mixer(Flat)


def test__incomplete_class__is_refused_with_what_it_lacks():
    class Half(mixers.TokenMixer):
        config_type = Honest.config_type

        def forward(self, x, mask=None):
            return x

    for incomplete, lacks in ((Half, "flops, traits"), (mixers.TokenMixer, "flops, forward")):
        with pytest.raises(mixers.MixerError, match=f"{incomplete.__name__} lacks {lacks}"):
            checks(incomplete)


@pytest.mark.parametrize(
    ("kind", "config", "width"),
    [
        ("attention", {}, 16),
        ("attention", {"n_heads": 12}, 24),
        ("sepconv", {"n_filters": 5}, 20),
        ("attention", {"n_heads": 34, "rotary": True}, 68),
    ],
)
def test__width__none_given__is_the_first_that_suits_the_config(kind, config, width):
    assert {check.subject.d_model for check in checks(kind, [config])} == {width}


def test__width__that_does_not_suit__is_refused_before_anything_is_measured():
    for options in ({"d_model": 16}, {"d_model": 1}):
        with pytest.raises(mixers.SpecError, match="n_heads: 3 must divide d_model 1"):
            checks("attention", [{"n_heads": 3}], **options)
    with pytest.raises(mixers.SpecError, match="choose others, with d_model and seq_len"):
        checks("attention", [{"n_heads": 300}])
