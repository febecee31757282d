"""Take the pictures of docs/how-to/use-the-plugin.md: .venv/bin/python -m tests.page.plugin_pictures [FOLDER]

They are what some of the plugin's own tests see, so that a picture shows what was tried.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
FOLDER: Final = HERE.parents[1] / "docs" / "assets"
TAKEN: Final = {
    "chat-task": "plugin-chat",
    "plugin-panel": "plugin-pending",
    "search-hits": "plugin-search",
    "runs-run": "plugin-runs",
    "settings": "plugin-settings",
    "chat-answer-phone": "plugin-phone",
    "chat-task-dark": "plugin-dark",
}
"""Each picture of a test, and its name in the docs."""
_TESTS: Final = (
    "test_plugin_chat.py::test_scout_and_task_show_what_they_chose_and_their_edit_waits_in_the_note",
    "test_plugin_chat.py::test_an_answer_cites_lines_at_which_the_note_is_opened",
    "test_plugin.py::test_the_panel_lists_what_waits_and_takes_a_change_back",
    "test_plugin_search.py::test_hits_come_while_one_types_and_are_opened_and_linked_by_keys",
    "test_plugin_runs.py::test_a_run_is_begun_followed_and_written_to_a_note",
    "test_plugin_settings.py::test_the_tab_is_used_as_obsidian_draws_it",
)


def main(folder: Path) -> int:
    """Take them all into *folder*; gives pytest's exit code."""
    with tempfile.TemporaryDirectory() as seen:
        env = {**os.environ, "KNAPPER_PICTURES": seen}  # noqa: TID251 - for a process of its own
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-rs",
            "-p",
            "no:cacheprovider",
            *(str(HERE / one) for one in _TESTS),
        ]
        code = subprocess.run(command, cwd=HERE.parents[1], env=env, check=False).returncode
        if code:
            return code
        missing = copy_pictures(Path(seen), folder)
    if missing:
        print(f"not taken: {', '.join(missing)}; pytest says above which tests were skipped, and why", file=sys.stderr)  # noqa: T201
    return 1 if missing else 0


def copy_pictures(seen: Path, folder: Path) -> list[str]:
    """Copy all pictures under the docs' names, or none; gives the names of those that no test took."""
    missing = [name for name in TAKEN if not (seen / f"{name}.png").is_file()]
    for name, own in TAKEN.items() if not missing else ():
        _ = shutil.copyfile(seen / f"{name}.png", folder / f"{own}.png")
    return missing


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER))
