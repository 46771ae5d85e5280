import numpy as np

from search.data.seeding import generator


def test__generator__same_arguments__same_numbers() -> None:
    assert generator("a", 1, 2).random(5).tolist() == generator("a", 1, 2).random(5).tolist()


def test__generator__any_argument_differs__unrelated_numbers() -> None:
    base = generator("a", 1, 2).random(10_000)
    for other in (generator("b", 1, 2), generator("a", 2, 2), generator("a", 1, 3)):
        # A correlation of 10,000 independent pairs has a standard deviation of 0.01.
        assert abs(np.corrcoef(base, other.random(10_000))[0, 1]) < 0.05


def test__generator__global_state__neither_read_nor_changed() -> None:
    np.random.seed(0)
    before = generator("a", 0).random(3).tolist()
    state = np.random.get_state()[1].tolist()  # type: ignore[index,union-attr]
    np.random.seed(1)
    np.random.seed(0)
    assert generator("a", 0).random(3).tolist() == before
    assert np.random.get_state()[1].tolist() == state  # type: ignore[index,union-attr]
