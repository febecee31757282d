"""Kill writers many times: ``python tests/stress/kill.py --rounds 200``."""

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.stress import kills  # a script's path begins at its own folder


def main() -> int:
    """Run the rounds, report, and fail if anything was torn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200, help="each kills two writers")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as top:
        report = kills.run(options.rounds, seed=options.seed, top=Path(top))
    sys.stdout.write(report.line() + "\n" + "".join(f"{failure}\n" for failure in report.failures))
    return bool(report.failures)


if __name__ == "__main__":
    sys.exit(main())
