import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from texts import stream_of

from search.data.windows import TrainingWindows, Windows, even_sample, read_windows, tile

LENGTHS = st.lists(st.integers(1, 60), min_size=1, max_size=12)


def spans(windows: Windows) -> list[range]:
    return [
        range(start, start + length)
        for start, length in zip(windows.starts.tolist(), windows.lengths.tolist(), strict=True)
    ]


@given(lengths=LENGTHS, seq_len=st.integers(2, 20))
def test__tile__any_stream__every_token_once_and_no_document_end_crossed(
    lengths: list[int], seq_len: int
) -> None:
    stream = stream_of(*lengths)
    windows = tile(stream, seq_len)
    covered = [token for span in spans(windows) for token in span]
    assert covered == list(range(sum(lengths)))
    for span, document in zip(spans(windows), windows.documents, strict=True):
        assert stream.offsets[document] <= span[0]
        assert span[-1] < stream.offsets[document + 1]


def test__read_windows__short_last_window__padded_and_masked() -> None:
    stream = stream_of(5, 3)
    ids, mask = read_windows(stream.tokens, tile(stream, 4), 4, pad_id=99)
    assert ids.tolist() == [[0, 1, 2, 3], [4, 99, 99, 99], [5, 6, 7, 99]]
    assert mask is not None
    assert mask.tolist() == [[True] * 4, [True] + [False] * 3, [True] * 3 + [False]]


def test__read_windows__nothing_padded__no_mask() -> None:
    stream = stream_of(8)
    ids, mask = read_windows(stream.tokens, tile(stream, 4), 4, pad_id=99)
    assert ids.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert mask is None


@given(total=st.integers(1, 500), n=st.integers(1, 500), seed=st.integers(0, 100))
def test__even_sample__any_size__distinct_and_evenly_spread(total: int, n: int, seed: int) -> None:
    windows = tile(stream_of(*[4] * total), 4)
    chosen = even_sample(windows, n, np.random.default_rng(seed)).documents
    assert len(chosen) == min(n, total)
    steps = np.diff(chosen)
    if len(steps):
        assert steps.min() >= 1
        assert steps.max() - steps.min() <= 1


def test__even_sample__many_seeds__every_window_equally_often() -> None:
    windows = tile(stream_of(*[4] * 30), 4)
    counts = np.zeros(30)
    for seed in range(3_000):
        counts[even_sample(windows, 7, np.random.default_rng(seed)).documents] += 1
    # Binomial: 3,000 draws at 7/30 have a standard deviation of 23.
    np.testing.assert_allclose(counts, 3_000 * 7 / 30, atol=5 * 23)


@given(lengths=LENGTHS, seq_len=st.integers(2, 20), seed=st.integers(0, 5))
def test__training_windows__one_epoch__inside_documents_and_never_twice(
    lengths: list[int], seq_len: int, seed: int
) -> None:
    stream = stream_of(*lengths)
    windows = TrainingWindows(stream, seq_len)
    found = windows.batch(0, seed=seed, batch_size=windows.per_epoch)
    assert len(set(found.starts.tolist())) == len(found)
    for span, document in zip(spans(found), found.documents, strict=True):
        assert stream.offsets[document] <= span[0]
        assert span[-1] < stream.offsets[document + 1]
        assert len(span) == min(seq_len, lengths[document])


def test__training_windows__one_epoch__short_documents_once_each() -> None:
    windows = TrainingWindows(stream_of(*[3, 5, 8, 1] * 5), 8)
    assert windows.padded
    found = windows.batch(0, seed=0, batch_size=windows.per_epoch)
    assert sorted(found.documents.tolist()) == list(range(20))


def test__training_windows__many_epochs__nearly_every_token_equally_often() -> None:
    windows = TrainingWindows(stream_of(200, 90, 7), 10)
    counts = np.zeros(297)
    for epoch in range(400):
        for span in spans(windows.batch(epoch, seed=1, batch_size=windows.per_epoch)):
            counts[span.start : span.stop] += 1 / 400
    # Only a document's ends are read less often: fewer windows can reach them.
    inner = np.r_[10:190, 210:280]
    np.testing.assert_allclose(counts[inner], counts[inner].mean(), rtol=0.2)
    np.testing.assert_allclose(counts[290:], 1.0, atol=0.02)
    assert counts.min() > 0.05


def test__training_windows__batches__are_the_epoch_in_pieces_whatever_was_asked_before() -> None:
    stream = stream_of(500, 300)
    whole = TrainingWindows(stream, 10).batch(0, seed=3, batch_size=80)
    pieces = TrainingWindows(stream, 10)
    order = [7, 2, 0, 9, 4, 1, 8, 3, 6, 5]
    found = {step: pieces.batch(step, seed=3, batch_size=8).starts for step in order}
    assert np.concatenate([found[step] for step in range(10)]).tolist() == whole.starts.tolist()


def test__training_windows__other_seed_or_epoch__other_order() -> None:
    windows = TrainingWindows(stream_of(5_000), 10)
    n = windows.per_epoch
    first = windows.batch(0, seed=0, batch_size=n).starts
    assert first.tolist() != windows.batch(0, seed=1, batch_size=n).starts.tolist()
    assert first.tolist() != windows.batch(1, seed=0, batch_size=n).starts.tolist()
    assert first.tolist() == windows.batch(0, seed=0, batch_size=n).starts.tolist()
