"""A certificate: every numbered property of the proof, checked on all inputs or on a sample."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from mixers.theory import checks, checks_across, expected
from mixers.theory.cases import EXHAUSTIVE_UP_TO, Selection, cases, select
from mixers.theory.checks import Check, Claim
from mixers.theory.context import shift_layers
from mixers.theory.duplicates import distance_claims
from mixers.theory.layers import Tokens
from mixers.theory.network import Network, build
from mixers.theory.sizes import Sizes, in_words
from mixers.theory.subjects import ExactSubject, NetworkSubject
from mixers.theory.targets import Scrambled
from mixers.theory.tokenwise import quantizer_layers

MOST_BLOCK_RUNS = 100_000_000
"""Inputs times blocks that the network is run for; above, it is compared on part of the inputs."""
MOST_WINDOWS = 200_000
"""Windows of the value mapping that the exact form keeps."""
MOST_LITERAL_RUNS = 500_000
"""Inputs times layers for which the literal form runs in exact integers."""
SAMPLE = 20_000
PROGRESS_EVERY = 1_000


@dataclass(frozen=True)
class Certificate:
    """What was checked and how it came out.

    Attributes:
        sizes: The sizes.
        selection: Which inputs.
        subject: What was run on them.
        notes: What was left out and why.
        claims: One row for each property.
    """

    sizes: Sizes
    selection: Selection
    subject: str
    notes: tuple[str, ...]
    claims: tuple[Claim, ...]

    @property
    def failures(self) -> tuple[Claim, ...]:
        """The claims that do not hold."""
        return tuple(claim for claim in self.claims if not claim.holds)


def certify(
    sizes: Sizes,
    *,
    network: Network | None = None,
    sample: int = SAMPLE,
    seed: int = 0,
    exhaustive_up_to: int = EXHAUSTIVE_UP_TO,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Certificate:
    """Check every property of the construction.

    The network itself is measured, block by block, where float64 holds its numbers and it is small
    enough; else the same construction in exact integers, which no delta and no size overflows.

    Args:
        sizes: The sizes.
        network: The network to check, with the target `Scrambled`; None = build it.
        sample: Inputs to draw where there are more than `exhaustive_up_to`.
        seed: Seed of the sample, of the points inside the cubes and of the permutations.
        exhaustive_up_to: Most inputs of which all are taken.
        on_progress: Told, every `PROGRESS_EVERY` inputs, how many of how many are done.

    Raises:
        TheoryError: The network was asked of sizes that do not fit it.
    """
    target = Scrambled(sizes)
    selection = select(sizes, sample=sample, seed=seed, exhaustive_up_to=exhaustive_up_to)
    n_layers = expected.layer_counts(sizes.d, sizes.n, sizes.K, sizes.theorem)
    notes = []
    if network is None and sizes.fits_float64() and sizes.is_small():
        network = build(sizes, target)
    if network is None:
        notes.append(f"no network was run: {why_not(sizes)}")
    whole = network is not None and (selection.count * sum(n_layers.values()) <= MOST_BLOCK_RUNS)
    has_values = whole or n_layers["value"] <= MOST_WINDOWS
    if not has_values:
        notes.append(
            f"the value mapping was not run: {in_words(n_layers['value'], ',')} layers, "
            f"at most {MOST_WINDOWS:,} are kept"
        )
    subject: NetworkSubject | ExactSubject
    if network is not None and whole:
        subject = NetworkSubject(network, seed=seed)
    else:
        subject = ExactSubject(sizes, target if has_values else None, seed=seed)
    watching = watchers(sizes, selection, is_network=whole, has_values=has_values)
    for done, (case, reading) in enumerate(subject.read(cases(sizes, selection))):
        if done % PROGRESS_EVERY == 0:
            on_progress(done, selection.count)
        for check in watching:
            check.see(case, reading)
    claims = []
    if n_layers["quantizer"] <= MOST_LITERAL_RUNS:
        claims = [*layer_claims(sizes, network, n_layers), quantizer_claim(sizes)]
    else:
        notes.append(
            f"the quantizer was not run: {in_words(n_layers['quantizer'], ',')} layers, "
            f"at most {MOST_LITERAL_RUNS:,} are run"
        )
    claims += rows(watching)
    if network is not None and not whole:
        claims.append(network_claim(network, selection, n_layers))
    claims += distance_claims(sizes, sample=sample, seed=seed)
    return Certificate(sizes, selection, subject.name, tuple(notes), tuple(claims))


def why_not(sizes: Sizes) -> str:
    """Return why there is no network of these sizes."""
    try:
        sizes.require_network()
    except ValueError as error:
        return str(error)
    return "none was asked for"


def watchers(
    sizes: Sizes, selection: Selection, *, is_network: bool, has_values: bool
) -> list[Check]:
    """Return the checks that apply."""
    every = selection.sampled is None
    kinds: list[type[Check]] = [checks.Quantizer] if is_network else []
    kinds += [checks_across.Categories, checks.DistinctWithin, checks_across.DistinctAcross]
    if sizes.theorem == 2:
        kinds += [checks.InsideInterval, checks.BelowInterval, checks.OutsideInterval]
        kinds += [checks.NegativesStay, checks.Equivariance]
    kinds += [checks_across.TopIds, checks.ActingLayers]
    kinds += [checks.SparseEqual] if is_network else []
    found = [kind(sizes, is_exhaustive=every) for kind in kinds]
    n_shifts = sizes.n_layers["shifts"]
    if not is_network and n_shifts <= MOST_LITERAL_RUNS:
        stride = 1 + selection.count * n_shifts // MOST_LITERAL_RUNS
        found.append(checks.LiteralEqual(sizes, is_exhaustive=every, every=stride))
    categories = [1, 2, 3] if sizes.theorem == 2 else [1]
    for category in categories:
        if category == 3 and is_network and sizes.largest_entry * sum(sizes.u) > 2**53:
            continue
        found.append(checks.ClosedForm(sizes, is_exhaustive=every, category=category))
    if has_values:
        found.append(checks.Values(sizes, is_exhaustive=every, target=Scrambled(sizes)))
        if sizes.theorem == 2:
            found.append(checks.Zeros(sizes, is_exhaustive=every))
    return found


def rows(watching: list[Check]) -> Iterator[Claim]:
    """Yield the claims of the checks; some have two."""
    for check in watching:
        if isinstance(check, checks_across.TopIds):
            yield check.bounds()
        yield check.result()
        if isinstance(check, checks_across.DistinctAcross):
            yield check.gap()


def layer_claims(sizes: Sizes, network: Network | None, wanted: dict[str, int]) -> list[Claim]:
    """Return the layer counts: of the network's blocks, or of the layers as they are listed."""
    if network is not None:
        found = {name: len(blocks) for name, blocks in network.parts.items()}
        found["all"] = len(network.encoder.blocks)
        wanted = wanted | {"all": sum(wanted.values())}
    else:
        found = {"quantizer": len(quantizer_layers(sizes))}
        if wanted["shifts"] <= MOST_LITERAL_RUNS:
            found["shifts"] = len(shift_layers(sizes))
    return [
        Claim(f"layers: {name}", f"{wanted[name]:,}", f"{count:,}", wanted[name] == count)
        for name, count in found.items()
    ]


def quantizer_claim(sizes: Sizes) -> Claim:
    """Return the row of Lemma 5 entry by entry: both edges and the middle of the cubes.

    Every layer runs at every point, so of very many cubes only some, evenly spaced, are taken.
    """
    tiny = Fraction(1, 2**60)
    layers = quantizer_layers(sizes)
    n_cubes = sizes.K if sizes.theorem == 2 else sizes.n * sizes.K
    cubes = range(0, n_cubes, 1 + n_cubes * len(layers) // MOST_LITERAL_RUNS)
    points = [(k + inside, k) for k in cubes for inside in (0, Fraction(1, 2), 1 - tiny)]
    if sizes.theorem == 2:
        far = -sizes.K * sizes.B**sizes.n
        points += [(x, far) for x in (-tiny, -7, sizes.K, sizes.K + 7)]
    wrong = []
    for x, wanted in points:
        tokens: Tokens = [[x] * sizes.d]
        for layer in layers:
            tokens = layer(tokens)
        if tokens != [[wanted] * sizes.d]:
            wrong.append(x)
    found = f"on all {len(points):,} points" if not wrong else f"not at {wrong[0]} delta"
    name = f"Lemma 5: edges and middle of {len(cubes):,} of {n_cubes:,} intervals"
    return Claim(name, "floor to the grid; -delta^-nd outside", found, not wrong)


def network_claim(network: Network, selection: Selection, n_layers: dict[str, int]) -> Claim:
    """Return the row that compares the network with exact integers on part of the inputs."""
    sizes = network.sizes
    count = max(1, MOST_BLOCK_RUNS // sum(n_layers.values()))
    part = replace(selection, sampled=min(count, selection.count))
    exact = ExactSubject(sizes, Scrambled(sizes), seed=part.seed)
    same = total = 0
    for case, reading in NetworkSubject(network, seed=part.seed).read(cases(sizes, part)):
        same += exact.read_one(case).out == reading.out
        total += 1
    return Claim(
        "the network in float64 = exact integers, outputs",
        f"equal on {part.words}",
        f"equal on {same:,} of {total:,}",
        same == total,
    )
