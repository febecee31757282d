"""Gather what a draft is made of whose links follow, and what a person should hear of it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from knapper.changes.drafts import Capability, FileDraft, Rewritten
from knapper.changes.linking.link_edits import Broken, Relinked
from knapper.changes.linking.pages import Page
from knapper.changes.linking.referrers import Account
from knapper.vault import parser
from knapper.vault.paths import NotePath

_SHOWN: Final = 5


@dataclass(slots=True, kw_only=True)
class Sheet:
    """Hold the files of a draft, and the links in them that changed, or couldn't."""

    needs: frozenset[Capability]
    """What a client must be allowed to do for it."""
    files: list[FileDraft] = field(default_factory=list[FileDraft])
    rewritten: list[Rewritten] = field(default_factory=list[Rewritten])
    broken: list[tuple[NotePath, Broken]] = field(default_factory=list[tuple[NotePath, Broken]])
    hidden: int = 0
    """Links rewritten in files that the asker doesn't see."""
    hidden_broken: int = 0
    healed: int = 0
    """Links that led nowhere and lead to a file now."""

    def add(self, file: FileDraft, made: Relinked) -> None:
        """Add a file that the caller named."""
        self.files.append(file)
        self._count(file.place, made)

    def follow(self, page: Page, made: Relinked, *, hidden: bool) -> None:
        """Add a file that only follows; nothing happens where none of its links changes."""
        if hidden:
            self.hidden += len(made.rewritten)
            self.hidden_broken += len(made.broken)
            self.healed += made.healed
        else:
            self._count(page.path, made)
        if made.rewritten:
            self.files.append(
                FileDraft(
                    path=page.path,
                    base=parser.content_hash(page.raw),
                    before=page.raw,
                    after=made.after,
                    needs=self.needs,
                    cause="link",
                    hidden=hidden,
                )
            )

    def listed(self) -> tuple[Rewritten, ...]:
        """List what was rewritten, by file and line."""
        return tuple(sorted(self.rewritten, key=lambda one: (one.path, one.line)))

    def notices(self, account: Account, *, missing: int = 0, is_complete: bool = True) -> Iterator[str]:
        """Say what a person should know.

        Args:
            account: What was found while files were read.
            missing: How many files the index knows that are gone.
            is_complete: The index has seen the whole vault.
        """
        yield from self._broken_notices()
        if self.hidden:
            yield f"{_number(self.hidden, 'link')} in files that aren't yours to see followed too"
        if account.kept:
            yield f"{_number(account.kept, 'file')} not yours to see may link there, and stays as it is"
        if self.healed:
            yield f"{_number(self.healed, 'link')} that led nowhere will lead to a file"
        for path in account.unreadable[:_SHOWN]:
            yield f"{path} can't be read, so its links stay as they are"
        if stale := account.stale + missing:
            yield f"the index is behind by {_number(stale, 'file')} of those looked at; they were read from the disk"
        if not is_complete:
            yield "the index isn't complete yet: files that it doesn't know may hold links that stay as they are"

    def _count(self, place: NotePath, made: Relinked) -> None:
        self.rewritten += made.rewritten
        self.broken += ((place, one) for one in made.broken)
        self.healed += made.healed

    def _broken_notices(self) -> Iterator[str]:
        for path, one in self.broken[:_SHOWN]:
            place = f"{path}, line {one.line}"
            yield f"{place}: {one.text} can't be written so that it leads to {one.path}; mend it by hand"
        if len(self.broken) > _SHOWN:
            yield f"{len(self.broken) - _SHOWN} more links can't be written so that they lead where they led"
        if self.hidden_broken:
            yield f"{_number(self.hidden_broken, 'link')} in files that aren't yours to see can't follow"


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
