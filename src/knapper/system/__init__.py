"""What systems do differently with files: state for one user alone, and opening files without links."""
