"""Write to disk all or none, durably, and take it back: effects, the journal, recovery, undo."""
