"""Chat sessions: one for each open note and more by their ids, stored in a file that survives restarts."""
