"""Name the phases of a run of several agents, and how it can end."""

from typing import Literal

Phase = Literal["scout", "web", "task", "orchestrator"]
State = Literal["complete", "asked", "cancelled", "failed", "limit"]
"""How a run ended: done; with a question; by its person; by an error; at a limit of the owner's."""
