"""Texts used for training: repository, licence, file in which the licence was read. Only these are read by corpus.py."""

PARALLEL = {
    "tldr-pages/tldr": ("CC BY 4.0", "LICENSE.md"),
    "github/opensource.guide": ("CC BY 4.0", "LICENSE"),
    "unicode-org/cldr-json": ("Unicode License v3", "LICENSE"),
    "openstreetmap/id-tagging-schema": ("ISC", "LICENSE.md"),
    "dair-ai/Prompt-Engineering-Guide": ("MIT", "LICENSE.md"),
}
# English Markdown: heading -> section, sentence -> section
SECTIONS = {
    "dair-ai/Prompt-Engineering-Guide": ("MIT", "LICENSE.md"),
    "YishenTu/claudian": ("MIT", "LICENSE"),
    "allenhutchison/obsidian-gemini": ("MIT", "LICENSE"),
    "encode/starlette": ("BSD-3-Clause", "LICENSE.md"),
    "executablebooks/markdown-it-py": ("MIT", "LICENSE"),
    "hynek/structlog": ("MIT or Apache-2.0", "LICENSE-MIT"),
    "kepano/kepano-obsidian": ("MIT", "LICENSE"),
    "modelcontextprotocol/registry": ("MIT", "LICENSE"),
    "obsidian-tasks-group/obsidian-tasks": ("MIT", "LICENSE"),
    "obsidianmd/obsidian-api": ("MIT", "LICENSE.md"),
    "pssah4/vault-operator": ("Apache-2.0", "LICENSE"),
    "pydantic/pydantic-ai": ("MIT", "LICENSE"),
    "simonw/llm": ("Apache-2.0", "LICENSE"),
    "simonw/sqlite-utils": ("Apache-2.0", "LICENSE"),
}
