"""Several processes of one script at once, forked after its imports, which cost the most.

python together.py N MODULE ARGUMENT...: calls `main` of a module beside this file in N processes.
"""

import importlib
import os
import subprocess
import sys
import traceback
from pathlib import Path

SUPPORT = Path(__file__).parent


def start(n: int, module: str, *arguments: object) -> "subprocess.Popen[str]":
    """Start N processes of a script; the one returned ends when all of them have."""
    return subprocess.Popen(
        [sys.executable, __file__, str(n), module, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": str(SUPPORT.parents[1])},
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: "subprocess.Popen[str]", timeout_s: float = 300) -> None:
    """Wait for all; none may have failed."""
    errors = process.communicate(timeout=timeout_s)[1]
    assert process.returncode == 0, errors


def main(n: int, module: str, *arguments: str) -> int:
    """Fork, wait, and say how many failed."""
    script = importlib.import_module(module)
    children = []
    for _ in range(n):
        child = os.fork()
        if not child:
            code = 1
            try:
                script.main(*arguments)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        children.append(child)
    return sum(os.waitpid(child, 0)[1] != 0 for child in children)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), *sys.argv[2:]))
