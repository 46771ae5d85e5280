"""A worker process that reserves trials until a budget of N is used up; commits none of them.

python claim_budget.py URL STUDY_ID N
"""

import sys

from search.store.repo import Store


def main(url: str, study_id: int, budget: int) -> None:
    """Reserve until the counts say that the budget is used up."""
    with Store.open(url, create=False) as store:
        worker = store.register_worker()
        while store.reserve(
            study_id, worker, lambda counts: "search" if counts.started < budget else None
        ):
            pass


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
