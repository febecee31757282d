"""Hold that each mistake of earlier systems on agents, scripts and runs has tests, which are named here."""

import ast
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.sources import parsed

TESTS: Final = Path(__file__).parents[1]
MISTAKES: Final = {
    "a sandbox in the host's process": [
        "codemode/test_mistakes.py::test_a_script_does_not_run_in_the_process_of_its_host"
    ],
    "a sandbox that is escaped by pathlib, .., absolute paths and __globals__": [
        "codemode/test_mistakes.py::test_the_ways_out_of_other_sandboxes_are_among_the_attacks",
        "codemode/test_attacks.py::test_an_attack_has_no_effect_with_the_first_wall_alone",
    ],
    "a timed-out script that goes on": [
        "codemode/test_mistakes.py::test_a_script_that_ran_out_of_time_does_not_go_on",
        "codemode/test_watchdogs.py::test_it_bites_when_the_time_is_up",
    ],
    "imports, comprehensions, functions and classes that fail in scripts": [
        "codemode/test_mistakes.py::test_imports_comprehensions_functions_and_classes_work_in_scripts",
        "codemode/test_realistic.py::test_a_script_as_models_write_them_runs",
    ],
    "a cache keyed by the task's text alone": [
        "agents/test_run_cache.py::test_the_same_task_text_with_another_note_is_not_taken_from_the_cache",
        "agents/test_run_cache.py::test_whatever_else_an_answer_rests_on_is_part_of_the_key",
    ],
    "cached children left out of the synthesis": [
        "agents/test_run_cache.py::test_cached_children_are_part_of_the_synthesis"
    ],
    "tokens counted twice": [
        "agents/test_runs.py::test_tokens_are_counted_once",
        "codemode/test_runs.py::test_scripts_are_counted_once_and_in_their_node",
    ],
    "failed dependencies that release their dependants": [
        "agents/test_runs.py::test_failed_dependencies_do_not_release_their_dependants"
    ],
    "no answer at all when the budget ends": [
        "agents/test_run_budget.py::test_a_run_whose_tokens_end_still_has_its_answer",
        "agents/test_run_budget.py::test_a_run_whose_time_ends_still_has_its_answer",
    ],
    "accepting an edit joins it to the line above": [
        "changes/test_blocks.py::test_accepting_an_edit_does_not_join_it_to_the_line_above"
    ],
    "$$ becomes $": ["changes/test_blocks.py::test_two_dollars_stay_two_dollars"],
    "resolving a block collapses blank lines elsewhere": [
        "changes/test_blocks.py::test_resolving_one_block_leaves_blank_lines_elsewhere"
    ],
    "edits with code fences can't be resolved": ["changes/test_blocks.py::test_an_edit_with_fences_can_be_resolved"],
    "overlapping edits corrupt": [
        "changes/test_mistakes.py::test_overlapping_edits_do_not_corrupt_but_are_refused",
        "changes/test_writer.py::test_overlapping_edits_are_refused_and_nothing_is_half_applied",
    ],
    "line numbers shown to the model leave pending blocks out": [
        "changes/test_positions.py::test_line_numbers_count_pending_blocks_as_they_lie_on_disk",
        "agents/pipeline/test_contexts.py::test_an_edit_that_waits_is_marked_with_its_lines",
    ],
    "enforcement skipped when no note is open": [
        "agents/pipeline/test_enforcement.py::test_no_tool_passes_by",
        "agents/pipeline/test_task.py::test_with_no_note_open_the_current_scope_allows_no_edit",
    ],
    "property, tag and move writes pass by the review": [
        "agents/test_mistakes.py::test_writes_of_properties_and_tags_and_moves_do_not_pass_by_the_review"
    ],
    "a synchronous call stalls every session": [
        "server/chat/test_streams.py::test_a_session_that_waits_holds_no_other_one_up",
        "server/test_running.py::test_fifty_slow_calls_hold_up_neither_health_nor_other_kinds_of_calls",
        "agents/test_run_threads.py::test_work_that_blocks_holds_up_nobody_here",
    ],
    "sessions are lost at restart": [
        "agents/test_sessions.py::test_sessions_outlast_the_program",
        "server/ask/test_serving.py::test_a_question_outlives_the_server_and_its_session_has_the_turn",
    ],
    "a section edit that does nothing and reports success": [
        "changes/test_mistakes.py::test_a_section_edit_that_does_nothing_does_not_report_success"
    ],
}
"""What went wrong elsewhere, and what shows that it doesn't here."""


@cache
def named(path: Path) -> frozenset[str]:
    tree = parsed(path)
    return frozenset(one.name for one in tree.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_has_tests_that_are_there(mistake: str) -> None:
    for name in MISTAKES[mistake]:
        place, _, test = name.partition("::")

        assert test.startswith("test_")
        assert test in named(TESTS / place), name
