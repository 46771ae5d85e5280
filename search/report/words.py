"""The words of a report, for people who never saw one."""

from __future__ import annotations

from search.report.sections import Section

TITLE = "Words"
LEAD = "What the words of this report mean."
WORDS = {
    "mixer": "the part of a layer that carries information from one token to another: attention, "
    "or something cheaper",
    "stack": "a model as the list of its layers' mixers; its code has one letter a layer, the "
    "layer next to the input first",
    "hybrid": "a stack with more than one kind of mixer; a pure stack has one",
    "reference": "all-attention: attention in every layer",
    "shorter model": "a stack with fewer layers: the dull rival that also saves time",
    "pick": "the best stack of full depth on the selection split",
    "rival": "the best pure stack beside the pick where the pick is a hybrid, else the best hybrid",
    "selection split": "data that the search chose by; the best of many looks too good on it",
    "test split": "data that took no part in any choice; read after training with fresh seeds",
    "run, trial": "one stack trained once, with one seed",
    "seed": "fixes a run's initial weights, order of the data and masks",
    "repeat SD": "standard deviation between runs of one stack with different seeds",
    "interval": "where the true value lies, as far as the noise lets one say",
    "tolerance": "how much worse than all-attention is still good enough; set by the study",
    "exploratory": "measured on stacks that a sampler chose: a guide, not a verdict",
}


def section() -> Section:
    """Each word with its meaning."""
    return Section(TITLE, ("word", "meaning"), tuple(WORDS.items()))
