"""Keep conversations: one for each open note, more by their ids, in a file that survives restarts."""
