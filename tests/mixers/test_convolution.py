"""The back ends of the shared convolution: each equals the sum it stands for; the table is pure."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import mixers
from mixers import convolution
from mixers.convolution import BACKENDS, LONGEST_BAND, choose, convolve
from mixers.convolution_table import KERNEL_SIZES, SEQ_LENS, SHARED, TABLE
from mixers.toeplitz import by_blocks
from mixers.windowed import windows

SHAPES = st.tuples(
    st.integers(1, 3), st.integers(1, LONGEST_BAND + 3), st.integers(1, 3), st.integers(1, 3)
)


def summed(x, filters, before):
    """Entry (c, b, j) is the sum over k of filter[k] x[c, b, j - before + k], from every window."""
    n_filters, kernel_size = filters.shape
    padded = torch.nn.functional.pad(x, (before, kernel_size - 1 - before))
    windows = padded.unfold(2, kernel_size, 1)  # (D, B, N, K)
    by_channel = filters.repeat_interleave(len(x) // n_filters, 0)[:, None, None]
    return (windows * by_channel).sum(-1)


def gradients(convolved, x, filters, weight):
    return torch.autograd.grad((convolved * weight).sum(), (x, filters))


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)], ids=str
)
@pytest.mark.parametrize("backend", BACKENDS)
@settings(max_examples=10, deadline=None)
@given(data=st.data(), sizes=SHAPES, kernel_size=st.integers(1, 150))
def test__backend__any_shape__is_the_sum_over_taps_with_its_gradients(
    backend, dtype, tolerance, data, sizes, kernel_size
):
    batch, n, n_filters, shared = sizes
    before = data.draw(st.integers(0, kernel_size - 1))
    torch.manual_seed(n)
    x = torch.randn(n_filters * shared, batch, n, dtype=dtype, requires_grad=True)
    filters = torch.randn(n_filters, kernel_size, dtype=dtype, requires_grad=True)
    weight = torch.randn_like(x) / kernel_size**0.5
    got = convolve(x, filters, before=before, backend=backend)
    exact = (x.double(), filters.double())
    wanted = summed(*exact, before)
    assert got.dtype == dtype
    scale = (kernel_size * n) ** 0.5  # of sums of that many products of order 1
    torch.testing.assert_close(got.double(), wanted, atol=tolerance * scale, rtol=0)
    for left, right in zip(
        gradients(got, x, filters, weight), gradients(wanted, x, filters, weight), strict=True
    ):
        torch.testing.assert_close(left, right, atol=tolerance * scale, rtol=0)


@pytest.mark.parametrize("backend", BACKENDS)
def test__backend__bfloat16__is_rounded_as_often_as_it_is_added_up_at_most(backend):
    torch.manual_seed(0)
    x = torch.randn(12, 2, 200).bfloat16()
    filters = torch.randn(3, 128).bfloat16()
    got = convolve(x, filters, before=63, backend=backend)
    wanted = summed(x.double(), filters.double(), 63)
    assert got.dtype == torch.bfloat16
    # Five blocks are added; each sum is rounded to 8 bits.
    assert (got - wanted).abs().max() <= 5 * 2**-8 * wanted.abs().max()


@pytest.mark.parametrize("backend", ["band", "blocks", "fft"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", ["sepconv", "lightconv"])
def test__mixer__under_a_mask__equals_its_reference_by_every_backend(
    kind, causal, backend, monkeypatch
):
    monkeypatch.setattr(convolution, "choose", lambda *_, **__: backend)
    torch.manual_seed(0)
    n = LONGEST_BAND // 2 + 9
    mixer = mixers.build(
        {"kind": kind, "kernel_size": 12}, d_model=16, max_seq_len=n, causal=causal
    ).double()
    x = torch.randn(3, n, 16, dtype=torch.float64)
    mask = torch.rand(3, n) < 0.7
    mask[2] = False
    x[~mask] = torch.nan
    x.requires_grad_()
    weight = torch.randn_like(x) * mask[..., None]
    inputs = [x, *mixer.parameters()]
    got, wanted = mixer(x, mask), mixer.reference(x, mask)
    torch.testing.assert_close(got[mask], wanted[mask], atol=1e-12, rtol=0)
    for left, right in zip(
        torch.autograd.grad((got * weight).nan_to_num().sum(), inputs),
        torch.autograd.grad((wanted * weight).nan_to_num().sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(left, right, atol=1e-11, rtol=0)


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("rows", [4, 10])
@pytest.mark.parametrize("before", [0, 2, 6])
def test__blocks__gradient_by_hand__is_that_of_finite_differences(before, rows, gated):
    torch.manual_seed(0)
    x = torch.randn(8, 2, 10, dtype=torch.float64, requires_grad=True)
    filters = torch.randn(2, 7, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda *args: by_blocks(*args, before, rows, gated=gated), (x, filters)
    )


@pytest.mark.parametrize("n", [5, LONGEST_BAND + 3])
@pytest.mark.parametrize("backend", BACKENDS)
def test__backend__gated__convolves_the_gated_linear_unit(backend, n):
    torch.manual_seed(0)
    x = torch.randn(12, 2, n, dtype=torch.float64)
    filters = torch.randn(3, 9, dtype=torch.float64)
    values, gates = x.chunk(2)
    wanted = summed(values / (1 + (-gates).exp()), filters, 4)
    got = convolve(x, filters, before=4, backend=backend, gated=True)
    torch.testing.assert_close(got, wanted, atol=1e-12, rtol=0)


def test__blocks__second_derivative__is_refused():
    x = torch.randn(2, 1, 8, requires_grad=True)
    filters = torch.randn(1, 3, requires_grad=True)
    (first,) = torch.autograd.grad(by_blocks(x, filters, 1, 4).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


@settings(max_examples=200, deadline=None)
@given(
    device=st.sampled_from(["cpu", "cuda", "mps", "meta"]),
    dtype=st.sampled_from([torch.float64, torch.float32, torch.float16, torch.bfloat16]),
    kernel_size=st.integers(1, 5000),
    seq_len=st.integers(1, 100_000),
    shared=st.integers(1, 4096),
)
def test__choose__any_shape__gives_a_backend_that_holds_no_square_of_a_long_input(
    device, dtype, kernel_size, seq_len, shared
):
    sizes = {"kernel_size": kernel_size, "seq_len": seq_len, "shared": shared}
    backend = choose(device, dtype, **sizes)
    assert backend in BACKENDS
    assert backend == choose(device, dtype, **sizes)
    if backend == "band":
        assert seq_len <= LONGEST_BAND


@pytest.mark.parametrize("seq_len", [1, 100, 513, 4096])
def test__choose__between_listed_sizes__reads_the_larger_one(seq_len):
    place = next((i for i, size in enumerate(SEQ_LENS) if size >= seq_len), len(SEQ_LENS) - 1)
    row = TABLE["cpu"]["float32"][1][2]
    sizes = {"kernel_size": KERNEL_SIZES[1] + 1, "shared": SHARED[1], "seq_len": seq_len}
    assert choose("cpu", torch.float64, **sizes) == row[place]


def test__table__every_device__lists_every_size():
    for formats in TABLE.values():
        assert set(formats) == {"float32", "bfloat16"}
        for rows in formats.values():
            assert len(rows) == len(SHARED)
            assert {len(row) for row in rows} == {len(KERNEL_SIZES)}
            assert {len(cells) for row in rows for cells in row} == {len(SEQ_LENS)}


@pytest.mark.parametrize(
    ("n", "rows", "before", "after"), [(9, 4, 2, 5), (8, 8, 0, 3), (3, 2, 6, 0)]
)
def test__windows__gradient_by_hand__is_that_of_finite_differences(n, rows, before, after):
    x = torch.randn(2, 2, n, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda x: windows(x, before=before, after=after, rows=rows), (x,)
    )
