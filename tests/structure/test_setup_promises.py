"""What installing, setting up and running in the background promise, each with the tests that hold it.

A promise that is kept by a script alone, such as `scripts/first-minute` in CI, is named with the test beside it.
"""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
INSTALLERS = "structure/test_installers.py"
SETUP = "cli/test_setup.py"
SERVICE = "cli/test_service.py"
SYSTEMD = "service/test_systemd.py"
LAUNCHD = "service/test_launchd.py"
SCHEDULER = "service/test_task_scheduler.py"
PLUGIN = "cli/test_plugin.py"

PROMISES = {
    "the built plugin is installed by one command, and switched on only when asked": (
        (PLUGIN, "test_it_is_installed_enabled_only_when_asked_and_again_without_harm"),
        (PLUGIN, "test_it_is_taken_away_and_its_settings_stay_unless_they_should_not"),
        (SETUP, "test_the_plugin_is_installed_switched_on_and_paired_when_named"),
    ),
    "one command from a clone, without arguments, whose steps are announced": (
        (INSTALLERS, "test_the_real_python_is_taken_and_not_a_shim"),
        (SETUP, "test_three_answers_are_enough"),
    ),
    "any Python from 3.11 on, or the way to one": (
        (INSTALLERS, "test_without_a_fitting_python_the_way_to_one_is_told"),
        (INSTALLERS, "test_a_python_is_taken_by_its_path_with_a_space"),
        (INSTALLERS, "test_a_python_that_cannot_make_environments_is_told_with_the_package"),
    ),
    "the real interpreter and not a shim": ((INSTALLERS, "test_the_real_python_is_taken_and_not_a_shim"),),
    "a fitting environment is kept, and another made anew": (
        (INSTALLERS, "test_a_fitting_environment_is_kept_and_another_made_anew"),
        (INSTALLERS, "test_an_environment_that_was_left_unfinished_is_made_anew"),
    ),
    "vault, model, port, interval and place of the index are asked for or named, and no other line changes": (
        (SETUP, "test_three_answers_are_enough"),
        (SETUP, "test_port_interval_and_place_of_the_index_can_be_named"),
        (SETUP, "test_comments_and_other_vaults_of_the_configuration_stay"),
        (SETUP, "test_a_model_that_answers_is_entered"),
    ),
    "an example of the chat's instructions": (
        (SETUP, "test_an_example_of_the_chats_instructions_is_written_and_ones_own_stay"),
        (
            "agents/test_prompting.py",
            "test_a_file_that_is_named_wins_over_one_in_the_folder_and_that_over_the_built_in_one",
        ),
    ),
    "again without harm": (
        (SETUP, "test_a_vault_is_entered_and_indexed_and_a_second_time_nothing_changes"),
        (SYSTEMD, "test_it_can_be_installed_again_with_other_arguments"),
    ),
    "what was done is told, with how to undo it and the service's commands": (
        (SETUP, "test_each_step_that_changed_something_says_how_to_undo_it"),
        (SETUP, "test_service_and_clients_are_set_up_when_named"),
        (SETUP, "test_port_and_interval_are_shown_as_the_settings_have_them"),
    ),
    "nothing is asked where nobody can answer": (
        (SETUP, "test_a_vault_is_entered_and_indexed_and_a_second_time_nothing_changes"),
        (SETUP, "test_a_folder_of_notes_is_offered_behind_obsidians_vaults_and_taken_by_nobody_unasked"),
    ),
    "a user unit of systemd, enabled and started": (
        (SYSTEMD, "test_the_unit_is_as_agreed"),
        (SYSTEMD, "test_systemd_finds_nothing_wrong_with_the_unit"),
        (SYSTEMD, "test_it_is_installed_enabled_and_started_anew"),
        ("service/test_real_systemd.py", "test_it_is_restarted_stopped_and_started_at_login"),
    ),
    "an agent of launchd, unloaded before it is loaded": (
        (LAUNCHD, "test_the_property_list_is_as_agreed"),
        (LAUNCHD, "test_it_is_unloaded_before_it_is_loaded_again"),
    ),
    "a task of the Task Scheduler: at logon, least privilege, hidden, without a time limit": (
        (SCHEDULER, "test_the_xml_is_as_agreed"),
        (SCHEDULER, "test_elements_stand_in_the_schemas_order"),
        (SCHEDULER, "test_it_is_registered_from_utf_16_and_run"),
    ),
    "the whole vault is compared at an interval, and configuration and state are the command's": (
        ("server/test_watchers.py", "test_the_interval_of_the_settings_file_is_that_of_a_servers_comparisons"),
        (SERVICE, "test_the_service_has_the_configuration_and_the_state_of_the_command"),
        (SERVICE, "test_the_service_has_what_variables_of_the_command_say"),
        (SERVICE, "test_a_vault_can_be_watched_without_a_server"),
    ),
    "a command for the service, which shows what it would install": (
        (SERVICE, "test_a_dry_run_prints_the_definition_and_installs_nothing"),
        (SERVICE, "test_the_status_is_the_systems_and_the_servers"),
        (SERVICE, "test_where_the_system_keeps_no_log_the_file_is_shown"),
    ),
    "a killed server comes back, and tears no change": (
        ("service/test_killed.py", "test_a_killed_server_comes_back_and_tears_no_change"),
        ("service/test_real_systemd.py", "test_a_killed_server_comes_back_and_tears_no_change"),
    ),
    "exactly what was installed is removed, and named": (
        (SERVICE, "test_uninstalling_names_what_it_removed"),
        (SYSTEMD, "test_uninstalling_stops_it_and_removes_the_unit"),
        (LAUNCHD, "test_uninstalling_unloads_it_and_removes_the_list"),
        (SCHEDULER, "test_uninstalling_ends_and_deletes_it"),
    ),
    "the program goes only when asked; notes, index, journal and settings stay": (
        (INSTALLERS, "test_uninstalling_removes_the_environment_and_its_link_alone"),
    ),
    "the documented variables are read, beside the configuration file too; others are told": (
        ("config/test_precedence.py", "test_the_documented_variables_are_known"),
        ("config/test_vaults.py", "test_an_env_file_in_the_current_folder_is_not_read"),
        ("cli/test_unused.py", "test_a_variable_that_means_nothing_here_is_told_once"),
    ),
    "preferences, daily notes and attachments are where Obsidian has them": (
        ("agents/test_prompting.py", "test_preferences_are_read_anew_each_turn"),
        ("vault/test_daily.py", "test_a_vault_that_says_nothing_keeps_them_in_a_folder_of_their_own"),
        ("vault/test_attachments.py", "test_new_attachments_go_where_the_settings_say"),
    ),
}


@pytest.mark.parametrize("promise", PROMISES)
def test_the_tests_that_hold_a_promise_are_there(promise: str) -> None:
    missing = [
        f"{file}::{name}"
        for file, name in PROMISES[promise]
        if name not in {node.name for node in ast.walk(_parse(file)) if isinstance(node, ast.FunctionDef)}
    ]

    assert missing == []


def _parse(file: str) -> ast.Module:
    return ast.parse((TESTS / file).read_text(encoding="utf-8"))
