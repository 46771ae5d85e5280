import pytest
import torch

import mixers
from mixers.folder import save
from mixers.theory.cubes import OnCubes, mean
from mixers.theory.network import build
from mixers.theory.sizes import Sizes


def small(d_model=16):
    spec = mixers.EncoderSpec.of(
        "sepconv, attention", d_ff=16, d_model=d_model, max_seq_len=8, vocab_size=10
    )
    torch.manual_seed(0)
    return mixers.Encoder(spec)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test__load__saved_encoder__same_spec_precision_and_output(tmp_path, dtype):
    encoder = small().to(dtype)
    save(encoder, tmp_path / "new" / "folder")
    again = mixers.load(tmp_path / "new" / "folder")
    ids = torch.arange(8)[None]
    assert again.spec == encoder.spec
    assert torch.equal(again(ids), encoder(ids))
    assert again(ids).dtype == dtype


def test__load__network_of_a_theorem__same_function(tmp_path):
    sizes = Sizes(1, 2, 4)
    network = build(sizes, OnCubes(mean, sizes))
    save(network.encoder, tmp_path)
    x = torch.rand(50, 2, 1, dtype=torch.float64)
    assert torch.equal(mixers.load(tmp_path)(x), network.encoder(x))


def test__load__nothing_there__says_what_a_folder_has(tmp_path):
    with pytest.raises(mixers.MixerError, match=r"no spec\.json; a saved encoder has"):
        mixers.load(tmp_path)


def test__load__damaged_weights__says_so(tmp_path):
    save(small(), tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"\x00" * 20)
    with pytest.raises(mixers.MixerError, match="damaged"):
        mixers.load(tmp_path)


def test__load__weights_of_another_spec__says_so(tmp_path):
    save(small(), tmp_path)
    spec = (tmp_path / "spec.json").read_text()
    save(small(d_model=32), tmp_path)
    (tmp_path / "spec.json").write_text(spec)
    with pytest.raises(mixers.MixerError, match=r"does not belong to spec\.json"):
        mixers.load(tmp_path)
