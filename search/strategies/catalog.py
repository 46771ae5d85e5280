"""The strategies by name, with the options each takes.

Importing this module does not import Optuna: names and options are checked before any of it is
needed. Samplers that do not suit a space of unordered choices, or that do not give the same
suggestions when rebuilt from stored rows, are not offered.
"""

from __future__ import annotations

from collections.abc import Mapping

from search.strategies.base import Strategy
from search.strategies.offers import Offer, OptionValue

TPE_OPTIONS: Mapping[str, type] = {
    "n_startup_trials": int,
    "n_ei_candidates": int,
    "multivariate": bool,
    "constant_liar": bool,
}

OFFERS: Mapping[str, Offer] = {
    "tpe": Offer("tree-structured Parzen estimator", TPE_OPTIONS, "TPESampler"),
    "screen": Offer("a screening design over the layers, then tpe", TPE_OPTIONS, "TPESampler"),
    "gp": Offer(
        "Gaussian process; seconds per proposal",
        {"n_startup_trials": int},
        "GPSampler",
    ),
    "nsgaii": Offer(
        "genetic algorithm",
        {
            "population_size": int,
            "mutation_prob": float,
            "crossover_prob": float,
            "swapping_prob": float,
        },
        "NSGAIISampler",
    ),
    "random": Offer("uniformly at random", {}, "RandomSampler"),
    "qmc": Offer(
        "low-discrepancy sequence",
        {"qmc_type": str, "scramble": bool},
        "QMCSampler",
        seeded_by_study=True,
    ),
    "bruteforce": Offer("every architecture once, in random order", {}, "BruteForceSampler"),
    "exhaustive": Offer("every architecture once, in the order of the space"),
    "listed": Offer("no search: a list, or the whole space, with several seeds", {"seeds": int}),
}


def offered() -> Mapping[str, Offer]:
    """Returns the strategies by name."""
    return OFFERS


def option_problems(name: str, options: Mapping[str, OptionValue]) -> list[tuple[str, str]]:
    """Returns (path below ``strategy``, problem) for an unknown name or an option it lacks."""
    from mixers.registry import suggestion

    offer = OFFERS.get(name)
    if offer is None:
        return [("name", f"unknown strategy {name!r}; {suggestion(name, OFFERS)}")]
    problems = []
    for option, value in options.items():
        expected = offer.options.get(option)
        if expected is None:
            hint = suggestion(option, offer.options)
            problems.append((f"options.{option}", f"strategy {name!r} has no such option; {hint}"))
        elif not _fits(value, expected):
            problems.append((f"options.{option}", f"expected {expected.__name__}, got {value!r}"))
    return problems


def _fits(value: OptionValue, expected: type) -> bool:
    if isinstance(value, bool) or expected is bool:
        return isinstance(value, bool) and expected is bool
    return isinstance(value, (int, float) if expected is float else expected)


def make_strategy(
    name: str,
    options: Mapping[str, OptionValue],
    study_seed: int,
    levels: tuple[str, str] = ("attention", "sepconv"),
) -> Strategy:
    """Builds a strategy.

    Args:
        name: Its name.
        options: Its options.
        study_seed: Seed of the study.
        levels: What a design compares, by notation or kind: the reference, and the cheap mixer
            where the baselines do not show a better one.

    Raises:
        ValueError: The name or an option is unknown, or the sampler refuses a value.
    """
    problems = option_problems(name, options)
    if problems:
        raise ValueError("; ".join(f"strategy.{path}: {text}" for path, text in problems))
    if not OFFERS[name].sampler:
        from search.strategies.exhaustive import Exhaustive
        from search.strategies.listed import Listed

        return Listed() if name == "listed" else Exhaustive()
    if name == "screen":
        from search.strategies.screen import Screen

        return Screen(OFFERS[name], dict(options), study_seed, levels)
    from search.strategies.optuna_sampler import OptunaSampler

    return OptunaSampler(OFFERS[name], dict(options), study_seed)
