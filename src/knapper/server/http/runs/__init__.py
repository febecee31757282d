"""Carry out larger tasks over HTTP: the routes of runs, and what lets runs go on by themselves."""
