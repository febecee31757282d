"""Do a task with the notes that were gathered: an answer, or edits that wait for the person's word."""
