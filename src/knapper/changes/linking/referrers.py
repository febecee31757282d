"""Find the files whose links a move may touch, and read them as they are now."""

import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from knapper.changes.linking.pages import Page
from knapper.changes.linking.relocation import Relocation
from knapper.errors import KnapError, NotFound
from knapper.index import store
from knapper.index.documents import FileState
from knapper.index.graph import Edge, Graph, UnresolvedLinks
from knapper.vault import files, walk
from knapper.vault.paths import NotePath
from knapper.vault.view import View

_BY_HAND = frozenset({"markdown", "image", "property", "canvas", "base"})
"""Kinds of links of which only the file tells whether they stay right."""


@dataclass(slots=True, kw_only=True)
class Account:
    """Count what a person should hear of the files that were looked at."""

    stale: int = 0
    """Files that the index has otherwise than the disk; they were read anew."""
    kept: int = 0
    """Files with links that aren't the asker's to see, and for which no other view was given."""
    unreadable: list[NotePath] = field(default_factory=list[NotePath])


class Referrers:
    """Read the files that may have to follow a move."""

    def __init__(self, view: View, owner: View, graph: Graph) -> None:
        """Look at a vault.

        Args:
            view: As the asker sees it.
            owner: As whoever may change links everywhere sees it; the same as *view* for nobody.
            graph: The index's.
        """
        self.account: Account = Account()
        self._view: View = view
        self._owner: View = owner
        self._graph: Graph = graph

    def following(self, relocation: Relocation, pasts: Collection[NotePath]) -> Iterator[Page]:
        """Read the files that don't move, and have links that may lead elsewhere afterwards, or led elsewhere once.

        Args:
            relocation: What moves.
            pasts: Files of which the journal has something to tell.
        """
        named = [one for one in self._graph.naming(relocation.keys) if one.source not in relocation.files]
        yield from self._pages(
            {one.source for one in named if one.source in pasts or self._may_change(one, relocation)}
        )

    def linking(self, path: NotePath, matters: Callable[[Edge], bool]) -> Iterator[Page]:
        """Read the files that link to a note, without the note itself.

        Args:
            path: The note.
            matters: Asked for each link; files without one that matters are left out.
        """
        wanted = {edge.source for edge in self._graph.incoming(path) if matters(edge)}
        named = self._graph.naming([store.link_key(path)])
        stale = {one.source for one in named if not self._is_current(one.source, one.known)}
        yield from self._pages((wanted | stale) - {path})

    def moving(self, path: NotePath, relocation: Relocation, pasts: Collection[NotePath]) -> tuple[bytes, Page | None]:
        """Read a note, canvas or base that moves; None in the page's place where none of its links can be touched.

        Raises:
            NotFound: It is gone.
            StorageError: It can't be read.
        """
        raw = self._view.read_bytes(path)
        kind = walk.kind_of(path)
        if kind != walk.kind_of(relocation.place(path)):
            return raw, None
        written = self._graph.written(path)
        is_idle = path not in pasts and written is not None and not self._may_change(written, relocation)
        return raw, None if is_idle else Page(path=path, raw=raw, kind=kind)

    def _pages(self, found: Collection[NotePath]) -> Iterator[Page]:
        for path in sorted(found):
            if not self._owner.visible(path):
                self.account.kept += not self._view.visible(path)
                continue
            page = self._read(path)
            if page is not None:
                yield page

    def is_hidden(self, path: NotePath) -> bool:
        """Tell whether a file isn't the asker's to see."""
        return not self._view.visible(path)

    def _may_change(self, written: UnresolvedLinks, relocation: Relocation) -> bool:
        """Tell whether some link of a file may have to be rewritten, or the index can't tell."""
        if not self._is_current(written.source, written.known):
            return True
        return any(_is_touched(written.source, kind, target, relocation) for kind, target in written.links)

    def _is_current(self, source: NotePath, known: FileState) -> bool:
        try:
            status = os.stat(self._view.root / source)  # noqa: PTH116  # hundreds of files, and Path makes it twice as slow
        except OSError:
            return False
        same = (status.st_size, status.st_mtime_ns) == (known.size, known.mtime_ns)
        self.account.stale += not same
        return same and not known.racy

    def _read(self, path: NotePath) -> Page | None:
        try:
            found = files.find_path(self._owner.root, path)
            if found.target != path:
                return None  # a symbolic link: the file that it leads to is read by its own name
            return Page(path=path, raw=self._owner.read_bytes(path), kind=walk.kind_of(path))
        except NotFound:
            return None  # gone since it was indexed
        except KnapError:
            if self._view.visible(path):
                self.account.unreadable.append(path)
            else:
                self.account.kept += 1
            return None


def _is_touched(source: NotePath, kind: str, target: str, relocation: Relocation) -> bool:
    before = relocation.led(target, source).path
    place = relocation.place(source)
    after = relocation.after.resolve(target, place).path
    if before is None:
        return after is not None or kind in _BY_HAND or target.startswith(("./", "../"))
    return after != relocation.place(before) or (kind in _BY_HAND and (place != source or after != before))
