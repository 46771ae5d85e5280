"""Masks: empty rows, half precision, leaks through biases, mixers that cannot see a mask."""

import pytest
import torch
from faulty_mixers import BoundToLength, Honest
from plugin_packages import lay_out, ok, run_python
from torch.nn.attention import SDPBackend, sdpa_kernel

import mixers
from mixers.errors import ConformanceError, MixerError
from mixers.spec import BlockSpec, EncoderSpec

CAN_BE_CAUSAL = [
    "attention", "average", "bproj", "dynamicconv", "hardmax_shift", "identity", "lightconv",
    "sepconv", "sparse_attention", "sparse_attention(pattern=star)",
]  # fmt: skip
BUILT_IN = [*CAN_BE_CAUSAL, "fourier"]
GPU = pytest.param(
    "cuda",
    marks=[
        pytest.mark.gpu,
        pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
    ],
)
on_every_device = pytest.mark.parametrize("device", ["cpu", GPU])
FUSED = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION]


def encoder(architecture, dtype=torch.float32, **fields):
    spec = EncoderSpec.of(
        architecture,
        **{"d_ff": 32, "vocab_size": 50, "d_model": 16, "max_seq_len": 16} | fields,
    )
    torch.manual_seed(0)
    return mixers.Encoder(spec).to(dtype)


@on_every_device
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("backend", [SDPBackend.MATH, FUSED[0], None])
@pytest.mark.parametrize("architecture", [f"{kind}*2" for kind in BUILT_IN])
def test__C01__row_of_padding_only__everything_stays_finite(architecture, backend, dtype, device):
    model = encoder(architecture, dtype).to(device)
    ids = torch.randint(50, (2, 8), device=device)
    mask = torch.tensor([[False] * 8, [True] * 5 + [False] * 3], device=device)
    # None: whatever fused one takes the shapes and the mask; the plain one where none does.
    backends = [backend, SDPBackend.MATH] if backend else [*FUSED, SDPBackend.MATH]
    with sdpa_kernel(backends):
        out = model(ids, mask)
        out.float().square().sum().backward()
        alone = model(ids[1:, :5])
    assert torch.isfinite(out).all()
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    assert gradients
    assert all(torch.isfinite(gradient).all() for gradient in gradients)
    # bfloat16 keeps 8 bits: two routes may differ in the last of them after two layers.
    tolerance = 1e-5 if dtype == torch.float32 else 0.1
    torch.testing.assert_close(out[1, :5], alone[0], atol=tolerance, rtol=0)


@on_every_device
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", ["attention", "hardmax_shift", "sparse_attention"])
def test__C03__half_precision__masked_tokens_weigh_nothing(kind, causal, dtype, device):
    torch.manual_seed(0)
    mixer = mixers.build(kind, d_model=16, max_seq_len=8, causal=causal).to(dtype)
    if kind != "hardmax_shift":
        with torch.no_grad():
            mixer.qkv.bias[:16] -= 2.74  # pushes scores, sums of 16 products over 4, to about -30
            mixer.qkv.bias[16:32] += 2.74
    mask = torch.ones(2, 8, dtype=torch.bool)
    mask[0, :3] = False  # with causal, these queries see no key at all
    mask[1, 5:] = False
    mixer, mask = mixer.to(device), mask.to(device)
    x = torch.randn(2, 8, 16).to(device, dtype)
    loud = x.masked_fill(~mask[..., None], 100.0)
    quiet, shouted = mixer(x, mask), mixer(loud, mask)
    assert torch.isfinite(quiet).all()
    assert torch.equal(quiet[mask], shouted[mask])


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("length", [9, 16, 64])
@pytest.mark.parametrize("kernel_size", [4, 5])
@pytest.mark.parametrize("kind", ["sepconv", "lightconv", "dynamicconv"])
def test__C04__convolution_with_bias__padding_does_not_leak(kind, kernel_size, length, side):
    model = encoder(f"{kind}(kernel_size={kernel_size})*3", positions="none", max_seq_len=64).eval()
    with torch.no_grad():
        for block in model.blocks:
            block.mixer.gate.bias.fill_(0.5)
            block.mixer.out.bias.fill_(0.5)
    ids = torch.randint(50, (1, 6))
    extra = torch.randint(50, (1, length - 6))
    padded = torch.cat([ids, extra] if side == "right" else [extra, ids], 1)
    real = torch.arange(length) < 6 if side == "right" else torch.arange(length) >= length - 6
    got = model(padded, real[None])[:, real]
    torch.testing.assert_close(got, model(ids), atol=1e-5, rtol=0)


@pytest.mark.parametrize("length", [6, 10, 32])
@pytest.mark.parametrize("kind", ["bproj", "average", "fourier"])
def test__C07__mixers_without_a_mask_of_their_own__padding_changes_nothing(kind, length):
    model = encoder(f"{kind}*2", max_seq_len=32).eval()
    ids = torch.randint(50, (1, 6))
    padded = torch.cat([ids, torch.randint(50, (1, length - 6))], 1)
    got = model(padded, (torch.arange(length) < 6)[None])[:, :6]
    torch.testing.assert_close(got, model(ids), atol=1e-5, rtol=0)


def test__C07__one_token_too_many__message_has_both_lengths():
    mixer = mixers.build("bproj", d_model=16, max_seq_len=32)
    with pytest.raises(MixerError, match=r"max_seq_len 32, got 33 tokens"):
        mixer(torch.randn(1, 33, 16))


def test__C07__plugin_with_a_length_bound_weight__must_say_so():
    by_name = {check.name: check for check in mixers.testing.checks(BoundToLength)}
    with pytest.raises(ConformanceError, match="fixed_length=False") as caught:
        by_name["fixed_length"]()
    assert "13 tokens where max_seq_len is 12" in str(caught.value)


class GlobalHonest(Honest):
    claims = {"reach": "global", "position_aware": True}  # noqa: RUF012 - as in the base class


class BlockAverage(GlobalHonest):
    """The mean of all tokens, broadcast back."""

    claims = {"reach": "global", "position_aware": False}  # noqa: RUF012

    def forward(self, x, mask=None):
        keep = torch.ones(x.shape[:2], dtype=torch.bool) if mask is None else mask
        total = mixers.zero_padding(x, mask).sum(1, keepdim=True)
        return self.out(total / keep.sum(1)[:, None, None].clamp(min=1)).expand_as(x)


class ChunkMean(GlobalHonest):
    """Means of chunks of four tokens."""

    claims = {"reach": 3, "position_aware": True}  # noqa: RUF012

    def forward(self, x, mask=None):
        x = mixers.zero_padding(x, mask)
        chunks = [chunk.mean(1, keepdim=True).expand_as(chunk) for chunk in x.split(4, dim=1)]
        return self.out(torch.cat(chunks, 1))


class SpectralFilter(GlobalHonest):
    """A filter on the Fourier coefficients: circular, so the end reaches the start."""

    def forward(self, x, mask=None):
        spectrum = torch.fft.rfft(mixers.zero_padding(x, mask).float(), dim=1)
        ramp = torch.linspace(1.0, 0.2, spectrum.shape[1])[None, :, None]
        mixed = torch.fft.irfft(spectrum * ramp, n=x.shape[1], dim=1)
        return self.out(mixed.to(x.dtype))


class SymmetricConvolution(GlobalHonest):
    """Three taps around the token, also when built causal."""

    claims = {"reach": 1, "position_aware": True}  # noqa: RUF012

    def neighbours(self, x):
        nothing = torch.zeros_like(x[:, :1])
        return torch.cat([nothing, x[:, :-1]], 1) + torch.cat([x[:, 1:], nothing], 1)


AHEAD = [BlockAverage, ChunkMean, SpectralFilter, SymmetricConvolution]


@pytest.mark.parametrize("mixer_type", AHEAD, ids=lambda mixer_type: mixer_type.__name__)
def test__C08__mixer_that_sees_the_future__is_found_by_its_causal_check(mixer_type):
    by_name = {check.name: check for check in mixers.testing.checks(mixer_type)}
    with pytest.raises(ConformanceError, match="no output looks ahead"):
        by_name["causal"]()


@pytest.mark.parametrize("mixer_type", AHEAD, ids=lambda mixer_type: mixer_type.__name__)
def test__C08__once_it_disclaims_causal__causal_is_refused_and_the_rest_accepted(mixer_type):
    class Bidirectional(mixer_type):
        claims = mixer_type.claims | {"causal": False}

    by_name = {check.name: check for check in mixers.testing.checks(Bidirectional)}
    by_name["causal"]()
    config = Bidirectional.config_type()
    with pytest.raises(MixerError, match="cannot be causal"):
        Bidirectional(config, d_model=16, max_seq_len=8, causal=True)
    Bidirectional(config, d_model=16, max_seq_len=8)(torch.randn(1, 8, 16))


def test__C08__causal_encoder__no_output_moves_with_a_later_token():
    sizes = {"d_ff": 32, "vocab_size": 50, "d_model": 16, "max_seq_len": 16}
    spec = EncoderSpec.of(", ".join(CAN_BE_CAUSAL), causal=True, **sizes)
    torch.manual_seed(0)
    model = mixers.Encoder(spec).double().eval()
    ids = torch.randint(50, (1, 10))
    changed = ids.clone()
    changed[:, 6:] = (changed[:, 6:] + 7) % 50
    torch.testing.assert_close(model(ids)[:, :6], model(changed)[:, :6], atol=1e-12, rtol=0)
    assert not torch.allclose(model(ids)[:, 6:], model(changed)[:, 6:])


def test__C08__causal_encoder__layer_that_looks_ahead_is_refused_before_anything_is_built():
    with pytest.raises(ValueError, match=r"blocks\.1\.mixer\.fourier"):
        EncoderSpec.of(
            "attention, fourier", causal=True, d_ff=32, vocab_size=50, d_model=16, max_seq_len=16
        )


@on_every_device
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test__C10__equal_scores__one_tie_rule_in_every_format_and_repeat(dtype, device):
    config = {"kind": "hardmax_shift", "n_heads": 1}
    mixer = mixers.build(config, d_model=16, max_seq_len=8).to(dtype)
    with torch.no_grad():
        mixer.score.zero_()
        mixer.lower.fill_(0.0)
        mixer.upper.fill_(1.0)
    mixer = mixer.to(device)
    x = torch.randn(1, 8, 16).to(device, dtype)
    mask = torch.tensor([[True] * 5 + [False] * 3], device=device)
    runs = [mixer(x, mask) for _ in range(10)]
    assert all(torch.equal(runs[0], run) for run in runs)
    assert (runs[0] == 0).all()  # every score 0 ties at b: mean - min = 0


@on_every_device
@pytest.mark.filterwarnings("ignore")  # the compiler's own
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test__C10__ties__compiled__give_what_they_give_otherwise(dtype, device):
    config = {"kind": "hardmax_shift", "n_heads": 2}
    mixer = mixers.build(config, d_model=16, max_seq_len=8).to(device, dtype)
    with torch.no_grad():
        # Head 0 has equal scores that tie at b; head 1 has the first feature, some of it equal.
        mixer.score.zero_()
        mixer.score[1, 0] = 1.0
        mixer.lower.fill_(0.0)
        mixer.upper.fill_(1.0)
    x = torch.randn(1, 8, 16).to(device, dtype)
    x[0, :, 0] = torch.tensor([0.0, 1.0, 0.5, 1.0, 0.0, -2.0, 2.0, 99.0])
    mask = torch.tensor([[True] * 7 + [False]], device=device)
    compiled = torch.compile(mixer, backend="aot_eager", fullgraph=True)
    wanted = mixer(x, mask)
    assert all(torch.equal(compiled(x, mask)[mask], wanted[mask]) for _ in range(10))
    torch.compiler.reset()


@on_every_device
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test__C10__prepared_scores_with_ties__selection_is_exact_and_ignores_padding(dtype, device):
    config = {"kind": "hardmax_shift", "n_heads": 1, "rule": "sign"}
    mixer = mixers.build(config, d_model=16, max_seq_len=8).to(dtype)
    with torch.no_grad():
        mixer.lower.fill_(1.0)
    # Exact in every format: sums and quarters of small powers of two.
    scores = torch.tensor([2.0, 1.0, 2.0, 1.0, -2.0, 0.0, 1.0, 99.0], dtype=dtype)[None, :, None]
    mask = torch.tensor([[True] * 4 + [True, True, False, False]])
    mixer, scores, mask = mixer.to(device), scores.to(device), mask.to(device)
    high, low, mean = mixer.extremes(scores, mask)
    chosen = mixer.select(scores, mixer.lower, high, low, mean)
    real = [2.0, 1.0, 2.0, 1.0, -2.0, 0.0]
    middle = torch.tensor(sum(real) / 6).to(dtype).item()
    wanted = [2.0, middle, 2.0, middle, -2.0, -2.0]
    assert chosen[0, :6, 0].tolist() == pytest.approx(wanted, rel=1e-2)
    assert chosen[0, 0, 0] == 2.0
    assert chosen[0, 4, 0] == -2.0


def test__C26__misspelt_keys_at_every_depth__refused_with_path_and_nearest_name(tmp_path):
    site = lay_out("good", tmp_path / "site")
    code = """
import json
from mixers.spec import EncoderSpec, load
document = dict(vocab_size=9, d_model=16, max_seq_len=8, n_segmants=1, blocks=[
    dict(mixer=dict(kind="sepconv", kernal_size=7), d_ff=16),
    dict(mixer=dict(kind="good-mixers.taps", gian=1.0), d_ff=16, actvation="relu")])
lines = []
for form in (document, json.dumps(document)):
    try:
        load(EncoderSpec, form)
    except ValueError as error:
        lines.append(str(error))
assert lines[0] == lines[1]
print(lines[0])
"""
    lines = [line.partition("; known")[0] for line in ok(run_python(code, site)).splitlines()]
    assert [line.partition("? known")[0] for line in lines] == [
        "blocks.0.mixer.sepconv.kernal_size: unknown key 'kernal_size'; did you mean 'kernel_size'",
        "blocks.1.mixer.good-mixers.taps.gian: unknown key 'gian'; did you mean 'gain'",
        "blocks.1.actvation: unknown key 'actvation'; did you mean 'activation'",
        "n_segmants: unknown key 'n_segmants'; did you mean 'n_segments'",
    ]


def test__C26__misspelt_key__native_validation_refuses_too():
    with pytest.raises(ValueError, match="kernal_size"):
        BlockSpec.model_validate({"mixer": {"kind": "sepconv", "kernal_size": 7}, "d_ff": 16})
