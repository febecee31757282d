"""Keep the derived, disposable index of a vault, outside the vault."""
