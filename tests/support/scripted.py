"""Trials that play a script in place of a training."""

from search.messages import Costs, TrialFailure, TrialResult

COSTS = Costs(params=0, flops=0, step_s=None, latency_s=None, peak_memory_bytes=0)


def result(value=1.0, outcome="completed", reason="", splits=("selection", "test")):
    evaluations = {split: {"loss": value} for split in splits}
    return TrialResult(
        outcome=outcome,
        reason=reason,
        steps=3,
        sequences=3,
        seconds=0.1,
        evaluations=evaluations,
        costs=COSTS,
        probes=(),
        proof=None,
        environment={},
    )


def failed(cause):
    return TrialFailure(cause=cause, message=f"made to be {cause}", traceback="")


class Scripted:
    """A runner that plays one answer per attempt; then everything completes."""

    device = "cpu"

    def __init__(self, *answers):
        self.answers = list(answers)
        self.seen = []

    def run(self, assignment, *, on_message, should_stop):
        self.seen.append(assignment)
        answer = self.answers.pop(0) if self.answers else None
        if callable(answer):
            answer = answer(on_message, should_stop)
        return result() if answer is None else answer

    def close(self):
        pass
