"""What each figure shows and how to read it, for people who see it or hear it described."""

CAPTIONS = {
    "leaderboard": (
        "Leaderboard",
        "One line a stack, the best at the top. Open circles: the selection split, one seed. "
        "Filled circles: the mean on the test split with fresh seeds; the bar is the standard "
        "deviation between repeats. What can be told apart is for the verdicts to say.",
    ),
    "curves": (
        "Learning curves",
        "One line a trial. In colour: the finalists. Lines that still approach each other at the "
        "right end say that longer training may change the answer.",
    ),
    "heat-map": (
        "Mean by layer and mixer",
        "Each cell: the mean over all stacks with this mixer in this layer, the standard deviation "
        "between those stacks, and how many there are. These are raw means of stacks that a "
        "sampler chose: a picture, not an effect.",
    ),
    "effects": (
        "What each layer's mixer changes",
        "Each point: the difference that this mixer makes in place of attention in this layer; the "
        "bar is its interval, over all points together. A bar that crosses the line at zero leaves "
        "open which of the two is better there.",
    ),
    "pareto": (
        "Cost and quality",
        "One point a stack, with bars where its noise is known. Diamonds: nothing else is at least "
        "as good in all that is weighed, as far as the noise lets one say; open diamonds: perhaps. "
        "The dotted line joins the stacks whose means nothing beats.",
    ),
    "counts": (
        "How many layers do without attention?",
        "One point a stack, by the number of its layers without attention. The dotted line joins "
        "the means.",
    ),
}
