"""Run agents one after another for a task: what explores, what searches the web, what does the task."""
