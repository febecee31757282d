"""Hold the two scripts of the documented contract, unchanged."""

FIRST = """results = obsidian.search("OAuth implementation", limit=10)
patterns = obsidian.read_note("Patterns/Authentication/OAuth.md")

relevant = []
for r in results:
    if "refresh token" in r["content"].lower():
        relevant.append(r["content"][:2000])

__result__ = {
    "context": f"## OAuth Patterns\\n{patterns[:3000]}\\n\\n## Examples\\n{'---'.join(relevant)}",
    "citations": [{"vault": "main", "path": r["path"], "snip_start": 0, "snip_end": 2000} for r in results[:5]],
    "queries": ["OAuth implementation", "refresh token"],
    "signals": {"num_notes": len(results), "total_chars": sum(len(r["content"]) for r in results), "keyword_hits": 18},
    "confidence": 0.72,
    "why": "Found OAuth pattern note + 3 refresh token examples"
}
"""
SECOND = """# Step 1: Find relevant folders
folders = obsidian.list_notes()
auth_folders = [f for f in folders if "auth" in f.lower()]

# Step 2: Search within relevant folders
all_context = []
for folder in auth_folders:
    results = obsidian.search("OAuth JWT", limit=5)
    all_context.extend([r["content"][:1000] for r in results])

# Step 3: Read specific pattern notes
pattern = obsidian.read_note("Patterns/OAuth.md")
if pattern:
    all_context.append(pattern)

__result__ = {
    "context": "\\n---\\n".join(all_context),
    "citations": [{"vault": "main", "path": f} for f in auth_folders],
    "confidence": 0.8 if all_context else 0.2,
    "why": f"Found {len(all_context)} relevant sections"
}
"""
