"""The numbered properties of the proof that each input has by itself; see `checks_across`."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from mixers.theory import expected
from mixers.theory.cases import Case
from mixers.theory.context import contextual_ids, global_layer, shift_layers
from mixers.theory.layers import Tokens, dot
from mixers.theory.sizes import Sizes
from mixers.theory.subjects import Reading
from mixers.theory.tokenwise import Target


@dataclass(frozen=True)
class Claim:
    """One row of a certificate.

    Attributes:
        name: What is claimed, with its number in the paper.
        expected: What the proof (corrected) says.
        measured: What was found; names the first counterexample where it does not hold.
        holds: Whether they agree.
    """

    name: str
    expected: str
    measured: str
    holds: bool


class Check(ABC):
    """Watches one property.

    Args:
        sizes: The sizes.
        is_exhaustive: Whether it will see every input.
    """

    name: str
    expected: str

    def __init__(self, sizes: Sizes, *, is_exhaustive: bool) -> None:
        self.sizes = sizes
        self.is_exhaustive = is_exhaustive
        self.count = 0

    @abstractmethod
    def see(self, case: Case, reading: Reading) -> None:
        """Take in one input."""

    @abstractmethod
    def result(self) -> Claim:
        """Return the row."""


class Everywhere(Check):
    """A property of single inputs: counts those of its categories and those that break it."""

    categories: tuple[int, ...] = (1, 2, 3)

    def __init__(self, sizes: Sizes, *, is_exhaustive: bool) -> None:
        super().__init__(sizes, is_exhaustive=is_exhaustive)
        self.n_broken = 0
        self.first: Case | None = None

    @abstractmethod
    def holds(self, case: Case, reading: Reading) -> bool:
        """Whether one input has the property."""

    def see(self, case: Case, reading: Reading) -> None:
        """Take in one input."""
        if case.category not in self.categories:
            return
        self.count += 1
        if not self.holds(case, reading):
            self.n_broken += 1
            self.first = self.first or case

    def result(self) -> Claim:
        """Return the row."""
        if self.first is None:
            return Claim(self.name, self.expected, f"on all {self.count:,} inputs", self.count > 0)
        example = f"first at ids {list(self.first.ids)}"
        measured = f"not on {self.n_broken:,} of {self.count:,} inputs, {example}"
        return Claim(self.name, self.expected, measured, False)


class Quantizer(Everywhere):
    """Lemma 5 on points inside the cubes."""

    name = "Lemma 5: X in S_L is quantised to L"
    expected = "floor to the grid; -delta^-nd outside"

    def holds(self, case: Case, reading: Reading) -> bool:
        """Whether the grid point was reached."""
        return reading.quantized == case.tokens


class DistinctWithin(Everywhere):
    """Property 6.1."""

    name = "property 6.1: the ids of one context are distinct"
    expected = "n different ids"
    categories = (1,)

    def holds(self, case: Case, reading: Reading) -> bool:
        """Whether they differ."""
        return len(set(reading.ids)) == self.sizes.n


class InsideInterval(Everywhere):
    """Property 6.3."""

    name = "property 6.3: Category 1 inside [t_l, t_r)"
    categories = (1,)

    def __init__(self, sizes: Sizes, *, is_exhaustive: bool) -> None:
        super().__init__(sizes, is_exhaustive=is_exhaustive)
        self.ends = expected.ends(sizes.d, sizes.n, sizes.K)
        self.expected = f"in [{self.ends[0]}, {self.ends[1]})"

    def holds(self, case: Case, reading: Reading) -> bool:
        """Whether all ids are inside."""
        return self.ends[0] <= min(reading.ids) and max(reading.ids) < self.ends[1]


class BelowInterval(InsideInterval):
    """Property 6.4 for duplicates (B.5.2)."""

    name = "property 6.4, Category 2: duplicates below t_l"
    categories = (2,)

    def __init__(self, sizes: Sizes, *, is_exhaustive: bool) -> None:
        super().__init__(sizes, is_exhaustive=is_exhaustive)
        self.expected = f"all ids < {self.ends[0]}"

    def holds(self, case: Case, reading: Reading) -> bool:
        """Whether all ids are below."""
        return max(reading.ids) < self.ends[0]


class OutsideInterval(InsideInterval):
    """Property 6.4 for inputs outside the cube (B.5.3)."""

    name = "property 6.4, Category 3: negative or >= t_r"
    categories = (3,)

    def __init__(self, sizes: Sizes, *, is_exhaustive: bool) -> None:
        super().__init__(sizes, is_exhaustive=is_exhaustive)
        self.expected = f"id < 0 or id >= {self.ends[1]}"

    def holds(self, case: Case, reading: Reading) -> bool:
        """Whether every id is outside."""
        return all(q < 0 or q >= self.ends[1] for q in reading.ids)


class NegativesStay(Everywhere):
    """B.5.3: the sweep does not touch tokens with an entry outside."""

    name = "B.5.3: the sweep moves no negative id"
    expected = "unchanged before the global layer"
    categories = (3,)

    def holds(self, case: Case, reading: Reading) -> bool:
        """Whether they stayed."""
        return all(
            after == before
            for before, after in zip(case.ids, reading.swept, strict=True)
            if before < 0
        )


class ClosedForm(Everywhere):
    """The ids as the proof computes them, B.5.1 to B.5.3."""

    expected = "l~_j and q_j, all tokens"

    def __init__(self, sizes: Sizes, *, is_exhaustive: bool, category: int) -> None:
        super().__init__(sizes, is_exhaustive=is_exhaustive)
        self.categories = (category,)
        where = f"Category {category}" if sizes.theorem == 2 else "appendix C.2"
        self.name = f"closed form of the ids, {where}"
        self.factor = expected.global_factor(sizes.d, sizes.n, sizes.K, sizes.theorem)

    def holds(self, case: Case, reading: Reading) -> bool:
        """Whether both stages agree; what C.2 overlooks has a claim of its own."""
        if self.sizes.theorem == 3 and self.shifted_twice(case):
            return True
        swept = expected.swept(list(case.ids), self.sizes.B)
        return list(reading.swept) == swept and list(reading.ids) == expected.global_shift(
            swept, self.factor
        )

    def shifted_twice(self, case: Case) -> bool:
        """Whether this is L = (1 - delta, 1) of d = 1, n = 2, where C.2's closed form is wrong."""
        K = self.sizes.K
        return (self.sizes.d, self.sizes.n, case.ids) == (1, 2, (K - 1, K))


class ActingLayers(Everywhere):
    """How many layers of the contextual mapping act, whatever B is."""

    def __init__(self, sizes: Sizes, *, is_exhaustive: bool) -> None:
        super().__init__(sizes, is_exhaustive=is_exhaustive)
        twice = sizes.theorem == 3 and (sizes.d, sizes.n) == (1, 2)
        self.most = sizes.n + 2 if twice else sizes.n + 1
        self.name = "layers of the contextual mapping that act"
        self.expected = f"at most {self.most}, the global one included"

    def holds(self, case: Case, reading: Reading) -> bool:
        """Whether there are few enough."""
        return reading.n_acting + 1 <= self.most


class Equivariance(Everywhere):
    """Claim 1."""

    name = "Claim 1: permuted tokens, permuted result"
    expected = "equal to the last bit"

    def holds(self, case: Case, reading: Reading) -> bool:
        """Whether a random permutation commuted."""
        return reading.permutes is True


class SparseEqual(Everywhere):
    """The literal layers of the network and the sparse form."""

    name = "literal layers = sparse form in integers"
    expected = "the same ids"

    def __init__(self, sizes: Sizes, *, is_exhaustive: bool) -> None:
        super().__init__(sizes, is_exhaustive=is_exhaustive)
        if sizes.largest_entry * sum(sizes.u) > 2**53:  # ids of Category 3 are rounded
            self.categories = (1, 2)

    def holds(self, case: Case, reading: Reading) -> bool:
        """Whether both give the same, before and after the global layer."""
        ids, swept, _ = contextual_ids(self.sizes, list(case.ids))
        return list(reading.ids) == ids and list(reading.swept) == swept


class LiteralEqual(Everywhere):
    """The same where no network runs: every layer of the proof in exact integers."""

    name = SparseEqual.name
    expected = SparseEqual.expected

    def __init__(self, sizes: Sizes, *, is_exhaustive: bool, every: int) -> None:
        super().__init__(sizes, is_exhaustive=is_exhaustive)
        self.shifts, self.last = shift_layers(sizes), global_layer(sizes)
        self.every = every
        self.n_seen = 0

    def see(self, case: Case, reading: Reading) -> None:
        """Take in every so manieth input: this form costs B layers for each."""
        if self.n_seen % self.every == 0:
            super().see(case, reading)
        self.n_seen += 1

    def holds(self, case: Case, reading: Reading) -> bool:
        """Whether all layers give what the ones that act give."""
        tokens: Tokens = [list(token) for token in case.tokens]
        for layer in self.shifts:
            tokens = layer(tokens)
        return tuple(dot(self.sizes.u, token) for token in self.last(tokens)) == reading.ids


class Values(Everywhere):
    """g(X) = f(X) away from duplicates."""

    name = "g(X) = f(X) on cubes with distinct columns"
    expected = "A_L, every token"
    categories = (1,)

    def __init__(self, sizes: Sizes, *, is_exhaustive: bool, target: Target) -> None:
        super().__init__(sizes, is_exhaustive=is_exhaustive)
        self.target = target
        if sizes.theorem == 3:
            self.name = "g(X) = f(X) on every cube"

    def holds(self, case: Case, reading: Reading) -> bool:
        """Whether the output is the target of this cube."""
        assert reading.out is not None
        return list(map(list, reading.out)) == [list(a) for a in self.target(case.columns)]


class Zeros(Everywhere):
    """g(X) = 0 elsewhere."""

    name = "g(X) = 0 on duplicates and outside"
    expected = "0, every token"
    categories = (2, 3)

    def holds(self, case: Case, reading: Reading) -> bool:
        """Whether the output is 0."""
        assert reading.out is not None
        return not any(entry for token in reading.out for entry in token)
