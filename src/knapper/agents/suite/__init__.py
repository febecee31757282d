"""Try a model on tasks over a small vault, and look at the vault afterwards."""
