"""A worker process that takes a queued trial, says so and waits to be killed.

python claim_and_wait.py URL STUDY_ID
"""

import sys
import time

from search.store.repo import Store


def main(url: str, study_id: int) -> None:
    """Claim, say so, wait."""
    with Store.open(url, create=False) as store:
        assert store.reserve(study_id, store.register_worker(), lambda counts: None) is not None
        sys.stdout.write("claimed\n")
        sys.stdout.flush()
        time.sleep(600)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
