"""Runs the cases of this folder, each a function; what fails is printed, and the end is 1."""

import sys
import time
import traceback

# They put their cases into CASES.
import exports  # noqa: F401
import hooks  # noqa: F401
import monitoring  # noqa: F401
import network  # noqa: F401
import pages  # noqa: F401
import pods  # noqa: F401
import refusals  # noqa: F401
import rendering  # noqa: F401
import settings  # noqa: F401
from chart import CASES


def main() -> int:
    chosen = sys.argv[1:] or list(CASES)
    if unknown := [name for name in chosen if name not in CASES]:
        print(f"no case {unknown[0]}; there are: {' '.join(CASES)}", file=sys.stderr)
        return 2
    failed = 0
    for name in chosen:
        began = time.monotonic()
        try:
            CASES[name]()
            print(f"ok    {name} ({time.monotonic() - began:.1f} s)")
        except Exception:
            failed += 1
            print(f"FAIL  {name}", flush=True)
            traceback.print_exc()
    print(f"{len(chosen) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
