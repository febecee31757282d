"""All writing to a vault: requests, drafts, rules, proposals, and durable changes on disk."""
