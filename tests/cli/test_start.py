"""What `knapper.cli.start` does before and after a command."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest


def test_a_short_command_collects_no_garbage_while_it_imports(tmp_path: Path) -> None:
    _ = (tmp_path / "Garden.md").write_text("Compost.\n", encoding="utf-8")
    code = (
        "import gc, sys; from knapper.cli import __main__ as program, start\nusual = gc.get_threshold()\n"
        "sys.argv = ['knap', '--vault', '.', 'read', 'Garden.md']\n"
        "try: program.main()\nexcept SystemExit: pass\n"
        "print(gc.get_threshold()[0] > 20 * usual[0], gc.get_stats()[2]['collections'], file=sys.stderr)\n"
        "start.collect_garbage_as_usual()\n"
        "print(gc.get_threshold() == usual, gc.get_freeze_count() > 10_000, file=sys.stderr)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)

    assert ended.stderr.split() == ["True", "0", "True", "True"]


@pytest.mark.parametrize("command", ["chat", "mcp", "serve", "watch"])
def test_a_command_that_goes_on_for_long_collects_it_as_usual(command: str) -> None:
    source = import_module(f"knapper.cli.commands.{command}").__file__

    assert source is not None
    assert "start.collect_garbage_as_usual()" in Path(source).read_text(encoding="utf-8")
