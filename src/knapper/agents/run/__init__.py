"""Carry out a task as a tree of subtasks: each retrieves from the notes by itself, and one answer is made of them."""
