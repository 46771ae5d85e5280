"""Two-level designs over layers: which layers are cheap in each run, and which runs come first.

Up to four layers, all 2^L stacks. Above, a Plackett-Burman design folded over: the rows of a
Hadamard matrix H of the smallest order N >= L that is constructed here, and those of -H. Its main
effects are orthogonal to each other and to all products of two layers (resolution IV), in 2 N runs
(Plackett and Burman 1946; Box and Wilson 1951 for the foldover). A ladder of counts, 0, 1, L/4,
L/2, 3 L/4 and L cheap layers, is part of every design.

Orders come from Paley's two constructions over primes (1933) and from doubling; orders 8, 12, 20
and 24 are the matrices that Plackett and Burman published.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

MOST_FACTORIAL = 4
MOST_LAYERS = 128
"""Above, a folded design has more runs than any budget; the ladder alone is left."""
FIRST_ORDER = 8

Run = tuple[bool, ...]
"""Whether each layer is cheap."""


@dataclass(frozen=True)
class Design:
    """Runs of a screening design.

    Attributes:
        base: The orthogonal part: all stacks, or the folded Plackett-Burman design.
        ladder: One run for each count of the ladder; out of the base where it has the count.
        kind: What the base is, in words.
    """

    base: tuple[Run, ...]
    ladder: tuple[Run, ...]
    kind: str

    @property
    def runs(self) -> tuple[Run, ...]:
        """Every run once, in the order in which they are trained.

        The ladder comes first. After it each run is followed by its mirror image, so a design that
        is cut short still has every layer cheap about as often as not; of a full factorial of an
        even number of layers, the half with an even number of cheap layers comes before the other.
        """
        return tuple(dict.fromkeys((*self.ladder, *self.base)))


@cache
def screening_design(n_layers: int) -> Design:
    """Returns the design for so many layers.

    Raises:
        ValueError: There is no layer.
    """
    if n_layers < 1:
        raise ValueError(f"a design needs a layer, got {n_layers}")
    if n_layers <= MOST_FACTORIAL:
        base, kind = tuple(_factorial(n_layers)), "full factorial"
    elif n_layers <= MOST_LAYERS:
        base, kind = tuple(_folded(n_layers)), "folded Plackett-Burman"
    else:
        base, kind = (), "ladder of counts"
    return Design(base, tuple(_ladder(n_layers, base)), kind)


def mirrored(run: Run) -> Run:
    """Returns the run with cheap and other layers exchanged."""
    return tuple(not cheap for cheap in run)


def _factorial(n_layers: int) -> Iterator[Run]:
    runs = [
        tuple(bool(index >> (n_layers - 1 - layer) & 1) for layer in range(n_layers))
        for index in range(2**n_layers)
    ]
    halves = sorted(runs, key=lambda run: sum(run) % 2)
    yield from dict.fromkeys(member for run in halves for member in (run, mirrored(run)))


def _folded(n_layers: int) -> Iterator[Run]:
    order = max(FIRST_ORDER, n_layers)
    while not is_order(order):
        order += 1
    matrix = hadamard(order)
    # The constant column separates the halves: it is a layer of its own only where it is needed.
    columns = matrix[:, 1 : n_layers + 1] if n_layers < order else matrix
    for row in columns:
        run = tuple(bool(entry < 0) for entry in row)
        yield run
        yield mirrored(run)


def _ladder(n_layers: int, base: Sequence[Run]) -> Iterator[Run]:
    quarters = (n_layers // 2, round(n_layers / 4), n_layers - round(n_layers / 4))
    for count in dict.fromkeys((0, n_layers, *quarters, 1)):
        yield next((run for run in base if sum(run) == count), spread(n_layers, count))


def spread(n_layers: int, count: int) -> Run:
    """Returns the run whose cheap layers lie evenly over the depth."""
    cheap = {(2 * place + 1) * n_layers // (2 * count) for place in range(count)}
    return tuple(layer in cheap for layer in range(n_layers))


@cache
def is_order(order: int) -> bool:
    """Whether `hadamard` constructs this order."""
    if order in (1, 2):
        return True
    if order % 4:
        return False
    return _is_prime(order - 1) or _second_prime(order) is not None or is_order(order // 2)


@cache
def hadamard(order: int) -> np.ndarray:
    """Returns a Hadamard matrix: entries +1 and -1, H H' = N I, first row and column all +1.

    Raises:
        ValueError: The order is not constructed here.
    """
    if not is_order(order):
        raise ValueError(f"no Hadamard matrix of order {order} is constructed here")
    if order == 1:
        return np.ones((1, 1), dtype=np.int8)
    if order > 2 and _is_prime(order - 1):
        matrix = _first_paley(order - 1)
    elif (prime := _second_prime(order)) is not None:
        matrix = _second_paley(prime)
    else:
        half = hadamard(order // 2)
        matrix = np.block([[half, half], [half, -half]])
    rows_turned = matrix * matrix[:1]
    normalised: np.ndarray = rows_turned * rows_turned[:, :1]
    return normalised


def _second_prime(order: int) -> int | None:
    """The prime q = 1 (mod 4) with 2 (q + 1) = order, if there is one."""
    prime = order // 2 - 1
    return prime if order % 2 == 0 and prime % 4 == 1 and _is_prime(prime) else None


def _first_paley(prime: int) -> np.ndarray:
    """I + S with S = [[0, 1'], [-1, Q]] for a prime q = 3 (mod 4), of order q + 1."""
    bordered = np.ones((prime + 1, prime + 1), dtype=np.int8)
    bordered[1:, 0] = -1
    bordered[1:, 1:] = _residues(prime) + np.eye(prime, dtype=np.int8)
    return bordered


def _second_paley(prime: int) -> np.ndarray:
    """C x [[1, 1], [1, -1]] + I x [[1, -1], [-1, -1]] with C = [[0, 1'], [1, Q]]."""
    core = np.ones((prime + 1, prime + 1), dtype=np.int8)
    core[0, 0] = 0
    core[1:, 1:] = _residues(prime)
    cross = np.array([[1, 1], [1, -1]], dtype=np.int8)
    other = np.array([[1, -1], [-1, -1]], dtype=np.int8)
    result: np.ndarray = np.kron(core, cross) + np.kron(np.eye(prime + 1, dtype=np.int8), other)
    return result


def _residues(prime: int) -> np.ndarray:
    """Q[i, j] = 1 where j - i is a square modulo the prime, -1 where it is none, 0 on i = j."""
    squares = {number * number % prime for number in range(1, prime)}
    symbols = [0, *(1 if number in squares else -1 for number in range(1, prime))]
    rows = [[symbols[(j - i) % prime] for j in range(prime)] for i in range(prime)]
    return np.array(rows, dtype=np.int8)


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % k for k in range(2, int(number**0.5) + 1))
