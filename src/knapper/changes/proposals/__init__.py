"""Proposals: changes that wait for a person, stored, shown as blocks in notes, accepted or rejected."""
