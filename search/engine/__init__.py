"""One study from its first trial to its answer: claims, budgets, events, the end of a run."""
