"""Runs: tasks that are planned as a tree of questions, answered from the vault and joined into one answer."""
