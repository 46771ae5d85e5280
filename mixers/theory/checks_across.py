"""The numbered properties of the proof that inputs have only together."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from mixers.theory import expected
from mixers.theory.cases import Case
from mixers.theory.checks import Check, Claim
from mixers.theory.layers import Number
from mixers.theory.sizes import Sizes
from mixers.theory.subjects import Reading


class Categories(Check):
    """How many grid points each category has."""

    def __init__(self, sizes: Sizes, *, is_exhaustive: bool) -> None:
        super().__init__(sizes, is_exhaustive=is_exhaustive)
        self.found: Counter[int] = Counter()

    def see(self, case: Case, reading: Reading) -> None:
        """Take in one input."""
        self.found[case.category] += 1

    def result(self) -> Claim:
        """Return the row; a sample only has to have met every category."""
        wanted = expected.category_sizes(
            self.sizes.d, self.sizes.n, self.sizes.K, self.sizes.theorem
        )
        found = {category: self.found[category] for category in wanted}
        if self.is_exhaustive:
            words, holds = counted(wanted), found == wanted
        else:
            met = [category for category, size in wanted.items() if size]
            words, holds = "each in the sample", all(found[category] for category in met)
        return Claim(f"inputs in Category {counted_names(wanted)}", words, counted(found), holds)


def counted(sizes: dict[int, int]) -> str:
    """Return the numbers as text."""
    return " / ".join(f"{size:,}" for size in sizes.values())


def counted_names(sizes: dict[int, int]) -> str:
    """Return the categories as text."""
    return " / ".join(map(str, sizes))


class DistinctAcross(Check):
    """Property 6.2, and the smallest distance of ids that must differ."""

    def __init__(self, sizes: Sizes, *, is_exhaustive: bool) -> None:
        super().__init__(sizes, is_exhaustive=is_exhaustive)
        self.owner: dict[Number, tuple[int, ...]] = {}
        self.collision: tuple[Sequence[int], Sequence[int]] | None = None

    def see(self, case: Case, reading: Reading) -> None:
        """Take in one input of Category 1."""
        if case.category != 1:
            return
        self.count += 1
        context = tuple(sorted(case.ids))
        for q in reading.ids:
            if self.owner.setdefault(q, context) != context:
                self.collision = self.collision or (self.owner[q], context)

    def result(self) -> Claim:
        """Return the row of property 6.2."""
        other = "not a permutation" if self.sizes.theorem == 2 else "another input"
        name = f"property 6.2: the ids of L and L' differ, L' {other}"
        found = f"{len(self.owner):,} different ids, no two contexts share one"
        if self.collision is not None:
            found = f"ids {self.collision[0]} and {self.collision[1]} share one"
        return Claim(name, "no id shared", found, self.count > 0 and self.collision is None)

    def gap(self) -> Claim:
        """Return the row of the smallest gap (Theorem 3: at least delta)."""
        ordered = sorted(self.owner)
        found = min((b - a for a, b in pairwise(ordered)), default=0)
        exact = self.sizes.theorem == 2 and self.is_exhaustive
        least = 1
        if self.sizes.theorem == 2:
            least = expected.smallest_gap(self.sizes.d, self.sizes.n, self.sizes.K)
        words = f"{least}" if exact else f"at least {least}"
        holds = found == least if exact else found >= least
        return Claim("smallest gap of ids that must differ", words, str(found), bool(holds))


class TopIds(Check):
    """Lemma 10: bounds of the largest id before the global layer, and that it tells contexts."""

    def __init__(self, sizes: Sizes, *, is_exhaustive: bool) -> None:
        super().__init__(sizes, is_exhaustive=is_exhaustive)
        self.owner: dict[Number, tuple[int, ...]] = {}
        self.n_shared = 0

    def see(self, case: Case, reading: Reading) -> None:
        """Take in one input of Category 1."""
        if case.category != 1:
            return
        context = tuple(sorted(case.ids))
        if self.owner.setdefault(max(reading.swept), context) != context:
            self.n_shared += 1

    def bounds(self) -> Claim:
        """Return the row of the bounds."""
        sizes = self.sizes
        low, high = expected.top_bounds(sizes.d, sizes.n, sizes.K, sizes.theorem)
        least, most = min(self.owner, default=0), max(self.owner, default=0)
        if sizes.theorem == 2:
            name, words = "Lemma 10: bounds of l~_n", f"{low} < l~_n <= {high}"
            holds = low < least and most <= high
        else:
            name, words = "C.2: upper bound of l~_n", f"l~_n < {high}"
            holds = most < high
        return Claim(name, words, f"{least} to {most}", bool(self.owner) and holds)

    def result(self) -> Claim:
        """Return the row of injectivity."""
        name = "Lemma 10: l~_n tells contexts apart"
        found = f"{len(self.owner):,} values, {self.n_shared:,} shared by two contexts"
        return Claim(name, "one-to-one", found, bool(self.owner) and self.n_shared == 0)
