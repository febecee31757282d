"""The vault's files: paths, parsing, listing and access rules, without network or database."""
