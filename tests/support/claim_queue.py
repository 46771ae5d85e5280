"""A worker process that takes queued trials until none is left, appending each id to a file.

python claim_queue.py URL STUDY_ID FILE
"""

import os
import sys

from search.messages import TrialFailure
from search.store.repo import Store


def main(url: str, study_id: str, log: str) -> None:
    """Claim, note the id, end the trial; with one write per id, so lines never mix."""
    with Store.open(url, create=False) as store:
        worker = store.register_worker()
        while claim := store.reserve(int(study_id), worker, lambda counts: None):
            file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            os.write(file, f"{claim.trial_id} {claim.token} {worker}\n".encode())
            os.close(file)
            assert store.heartbeat(claim)
            assert store.fail(claim, TrialFailure(cause="error", message="made up")) == "failed"
        store.close_worker(worker)


if __name__ == "__main__":
    main(*sys.argv[1:])
