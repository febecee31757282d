"""Let an editor save while changes are applied, many times: ``python tests/stress/race.py --rounds 1000``."""

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.stress import races  # a script's path begins at its own folder


def main() -> int:
    """Run the rounds, report, and fail if a save was lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1000, help="saves of the editor")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as top:
        report = races.run(options.rounds, seed=options.seed, top=Path(top))
    sys.stdout.write(report.line() + "\n")
    return bool(report.lost)


if __name__ == "__main__":
    sys.exit(main())
