"""Run a benchmark: `python -m bench NAME [--write]`."""

import argparse
import signal
import sys
from importlib import import_module

from bench import frame, places

NAMES = (
    "index",
    "search",
    "watch",
    "restart",
    "scale",
    "ir",
    "quality",
    "cold",
    "setting_up",
    "kill",
    "jobs",
    "chaos",
    "real_moves",
    "writes",
    "load",
    "rate",
    "memory",
    "tools",
    "growth",
    "links",
    "scouting",
    "mcp",
    "tokens",
    "scripts",
    "retrieval",
    "model",
    "sessions",
    "chats",
    "loops",
    "flows",
    "page",
    "engines",
    "conformance",
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure Knapper; print a table.")
    commands = parser.add_subparsers(dest="name", required=True, metavar="NAME")
    modules = {name: import_module(f"bench.{name}") for name in NAMES}
    for name, module in modules.items():
        command = commands.add_parser(name, help=module.SUMMARY, description=module.SUMMARY)
        if frame.has_place(name):
            command.add_argument("--write", action="store_true", help="write the table into docs/benchmarks.md")
        else:
            command.set_defaults(write=False)
        command.add_argument("--check", action="store_true", help="exit with 1 if a goal isn't met")
        places.add_options(command)
        module.add_options(command)
    options = parser.parse_args()
    # Ended from outside, it stops what it started and removes its folders, as after Ctrl-C.
    signal.signal(signal.SIGTERM, frame.end)
    load = frame.load()
    report = modules[options.name].run(places.of(options), options)
    if isinstance(report, str):
        print(f"{options.name}: skipped: {report}")
        return 0
    text = frame.render(report, command=f"python -m bench {options.name}", load_before=load)
    print(text)
    if options.write:
        frame.write(options.name, text)
    return int(options.check and not all(row.goal.met(row.value) for row in report.rows if row.goal))


if __name__ == "__main__":
    sys.exit(main())
