"""A worker process that reserves trials until a budget of N is used up; commits none of them.

It says so by a line and stays alive until its input ends: a reservation whose process is gone is
given back, and the budget with it.

python claim_budget.py URL STUDY_ID N
"""

import sys

from search.store.repo import Store


def main(url: str, study_id: int, budget: int) -> None:
    """Reserve until the counts say that the budget is used up; then hold what was reserved."""
    with Store.open(url, create=False) as store:
        worker = store.register_worker()
        while store.reserve(
            study_id, worker, lambda counts: "search" if counts.started < budget else None
        ):
            pass
        sys.stdout.write("full\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
