"""Rank a published vault's chunks by words in memory: the lists of words as the database has them, each read once.

The server takes a microsecond for each row of a frequent word, and for each question again. A list that was read is
added up in nanoseconds a row, and follows what is published since. It was read by the role, so holds what that may see.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from knapper.errors import StorageError
from knapper.index import database
from knapper.index.postgres import rows
from knapper.index.words import bm25, postings
from knapper.index.words.bm25 import RankedTerm, ScoredTerm
from knapper.system.arrays import ScoredIds, np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from knapper.index.postgres.connection import Session
    from knapper.index.postgres.schema import TableState

MAX_LIST_BYTES: Final = 128 * 2**20
"""Of all lists that are kept, 6 bytes a row; those that weren't asked for longest go first."""
_SHORT_ROWS: Final = 2_000
"""Lists of up to this length are read at once, in one query; of a longer one it is asked whether it is needed."""
_READ_COST: Final = 30
"""How many times as long it takes to read a row as to add it up."""
_MAX_CHANGED_SHARE: Final = 0.1
"""Of the chunks, that may have been published anew since the first lists were read; with more, all are read again."""
_MIN_CHANGED: Final = 1_000
_LOCK_WAIT_S: Final = 10.0
"""How long to wait for another question; then lists are read for this one alone."""
_KEPT_NORMS: Final = 3
"""Of 8 MB for a million chunks each, by filter."""
_WITHOUT_EXCLUDED: Final = "-"
"""Name of the norms of a question that excludes something, until it is answered."""
_PLACE_MASK: Final = (1 << database.CHUNK_BITS) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Hits:
    """The chunks with a word or phrase that isn't one whole token: their ids, weights and lengths."""

    chunks: list[int]
    weights: list[int]
    words: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedWord:
    """One word of the question: its gain, and its token with the number of its chunks, or these themselves."""

    gain: float
    token: int = 0
    count: int = 0
    hits: Hits | None = None
    is_phrase: bool = False


@dataclass(slots=True, kw_only=True)
class _WordList:
    """The chunks with a word, by their places, ascending."""

    rows: NDArray[np.int32]
    weights: NDArray[Any]
    peak: float
    """The most that its occurrences count in any chunk, 0 to 1, at the mean length *mean*."""
    mean: float
    seen: int
    """Number of places when it was read, or last brought up to date."""
    drops: int
    """Number of removals of files at that time."""

    @property
    def size(self) -> int:
        """Return the bytes of its arrays."""
        return self.rows.nbytes + self.weights.nbytes


class WordLists:
    """Lends the lists of a vault's words at the state that a question sees; one question at a time, from any thread."""

    def __init__(self) -> None:
        """Begin without lists."""
        self._lock = threading.Lock()
        self._known: StateLists | None = None
        self._was_earlier = False
        """Whether the last question saw an earlier state than the lists that are kept."""

    @contextmanager
    def at(self, session: Session, state: TableState, meta: Mapping[str, str]) -> Generator[StateLists]:
        """Lend the lists, brought up to a state; *session* sees just that one.

        Raises:
            StorageError: The tables don't fit together.
        """
        if not self._lock.acquire(timeout=_LOCK_WAIT_S):
            # The server may let the other question wait for somebody's exclusive lock, who waits for this transaction.
            yield StateLists(session, state, meta)
            return
        try:
            with self._shared(session, state, meta) as shared:
                yield shared
        finally:
            self._lock.release()

    @contextmanager
    def _shared(self, session: Session, state: TableState, meta: Mapping[str, str]) -> Generator[StateLists]:
        """Lend the lists that are kept; under the lock."""
        known = self._known
        if known is not None and known.is_later_than(state):
            # Begun before one that was quicker, whose lists are of more use to the next one; but where the next one
            # sees an earlier state, too, an older one of the database came back.
            earlier = StateLists(session, state, meta)
            yield earlier
            if self._was_earlier:
                earlier.trim()
                self._known = earlier
            self._was_earlier = not self._was_earlier
            return
        self._was_earlier = False
        self._known = None  # whatever goes wrong from here on, a list may have been read in part
        if known is None or (known.state != state and not known.follow(session, state, meta)):
            known = StateLists(session, state, meta)
        yield known
        known.trim()
        self._known = known


class StateLists:
    """The lists of words at one state of the tables; not thread-safe.

    Each chunk has a place, in the order of the ids at first; those of a file published anew are behind all others.
    """

    def __init__(self, session: Session, state: TableState, meta: Mapping[str, str]) -> None:
        """Read how many chunks each file has."""
        self.state = state
        self._bases = np.zeros(0, np.int64)
        self._counts = np.zeros(0, np.int64)
        self.files: NDArray[np.int64] = np.zeros(0, np.int64)
        """The file of the chunk at each place."""
        self._words = np.zeros(0, np.int32)
        self._is_dropped = np.zeros(0, np.bool_)
        self._lists: OrderedDict[int, _WordList] = OrderedDict()
        self._list_bytes = 0
        self._added: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        """By token: place and weight in the chunks that were published since the first list was read."""
        self._looked_up: Counter[int] = Counter()
        """By token without a list: in how many chunks it was looked up."""
        self._drops = 0
        self._norms: OrderedDict[str, NDArray[np.float64]] = OrderedDict()
        self._sums = np.zeros(0)
        self._log: NDArray[np.int64] | None = None
        self._set_totals(meta)
        self._add_files(*_read_files(session, -1))
        self._first_size = len(self.files)

    def _set_totals(self, meta: Mapping[str, str]) -> None:
        self._total, self._all_words = int(meta.get("chunks", "0")), int(meta.get("words", "0"))

    @property
    def _mean(self) -> float:
        return max(self._all_words, 1) / max(self._total, 1)

    def is_later_than(self, state: TableState) -> bool:
        """Return whether this is a later state of the same tables for the same role."""
        is_same = (self.state.vault_id, self.state.rules) == (state.vault_id, state.rules)
        return is_same and self.state.generation > state.generation

    def follow(self, session: Session, state: TableState, meta: Mapping[str, str]) -> bool:
        """Take in what was published since; False where reading all anew is better."""
        known = self.state
        is_same = (known.vault_id, known.rules) == (state.vault_id, state.rules)
        if not is_same or known.generation > state.generation or not known.is_in(session):
            return False
        ids, counts = _read_files(session, known.generation)
        behind = len(self.files) - self._first_size + int(counts.sum())
        if behind > max(_MIN_CHANGED, _MAX_CHANGED_SHARE * self._first_size):
            return False
        gone = session.execute("SELECT file FROM removed WHERE generation > %s", (known.generation,)).fetchall()
        dropped = [*ids.tolist(), *(int(file) for (file,) in gone)]
        for file in dropped:
            if file < len(self._counts):
                start = int(self._bases[file])
                self._is_dropped[start : start + int(self._counts[file])] = True
                self._counts[file] = 0
        self._drops += bool(dropped)
        self._add_files(ids, counts)
        # For the lists that there are and those still to be read.
        ranges = [database.chunk_range(file) for file in ids.tolist()]
        found = session.execute(
            "SELECT c.id, c.tokens, c.words FROM unnest(%s::bigint[], %s::bigint[]) AS r(a, b)"
            " JOIN chunks c ON c.id >= r.a AND c.id < r.b",
            ([a for a, _ in ranges], [b for _, b in ranges]),
        ).fetchall()
        found.sort()  # in SQL the server would look through all chunks in this order
        places = self.places(np.array([chunk for chunk, _, _ in found], np.int64))
        for place, (_, tokens, words) in zip(places.tolist(), found, strict=True):
            self._words[place] = words
            for token, weight in rows.weigh(tokens).items():
                self._added[token].append((place, weight))
        self._set_totals(meta)
        self._norms.clear()
        self._log = None
        self.state = state
        return True

    def _add_files(self, ids: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        """Give places to the chunks of files, behind all others."""
        order = np.argsort(ids)
        ids, counts = ids[order], counts[order]
        missing = int(ids[-1]) + 1 - len(self._bases) if len(ids) else 0
        if missing > 0:
            self._bases = np.pad(self._bases, (0, missing))
            self._counts = np.pad(self._counts, (0, missing))
        self._bases[ids] = len(self.files) + np.cumsum(counts) - counts
        self._counts[ids] = counts
        more = int(counts.sum())
        self.files = np.concatenate((self.files, np.repeat(ids, counts)))
        self._words = np.pad(self._words, (0, more))
        self._is_dropped = np.pad(self._is_dropped, (0, more))
        self._sums = np.zeros(len(self.files))

    def places(self, chunks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the places of chunks by their ids.

        Raises:
            StorageError: One is of no file.
        """
        files = chunks >> database.CHUNK_BITS
        if len(files) and int(files.max()) >= len(self._bases):
            raise _unfit_error()
        found = self._bases[files] + (chunks & _PLACE_MASK)
        if len(found) and not ((found < len(self.files)) & (self.files.take(found, mode="clip") == files)).all():
            raise _unfit_error()
        return found

    def ids(self, places: NDArray[Any]) -> NDArray[np.int64]:
        """Return the ids of chunks by their places."""
        files = self.files[places]
        return (files << database.CHUNK_BITS) + places - self._bases[files]

    def lengths(self, files: Sequence[int], *, most: int) -> list[int]:
        """Count the chunks of each file, up to *most*.

        Raises:
            StorageError: One is unknown, though its chunks were found in this very state of the tables.
        """
        if max(files, default=-1) >= len(self._counts):
            raise _unfit_error()
        return np.minimum(self._counts[np.array(files, np.int64)], most).tolist()

    def norms(
        self, session: Session, name: str, is_shown: Callable[[], NDArray[np.bool_] | None], *, has_log: bool
    ) -> NDArray[np.float64]:
        """Return what BM25 adds below the line for each chunk, infinite for those that may not be found.

        Args:
            session: Of this state.
            name: Of the filter; norms are kept under it.
            is_shown: Gives a mask by file id, or None where the filter leaves all files.
            has_log: Whether chunks of the program's log may be found.
        """
        key = f"{name}|{has_log}"
        norms = self._norms.get(key)
        if norms is None:
            norms = postings.row_norms(self._words, self._total, self._all_words)
            norms[self._is_dropped] = np.inf
            shown = is_shown()
            if shown is not None:
                norms[~shown[np.minimum(self.files, len(shown) - 1)] | (self.files >= len(shown))] = np.inf
            if not has_log:
                if self._log is None:
                    found = session.execute("SELECT id FROM chunks WHERE kind = 'log'").fetchall()
                    self._log = self.places(np.array([i for (i,) in found], np.int64))
                norms[self._log] = np.inf
            self._norms[key] = norms
            if len(self._norms) > _KEPT_NORMS:
                self._norms.popitem(last=False)
        self._norms.move_to_end(key)
        return norms

    def counts(
        self, session: Session, tokens: Collection[int], norms: NDArray[np.float64]
    ) -> tuple[dict[int, int], int]:
        """Count the chunks that may be found with each token, and all of them."""
        self.read([token for token in tokens if token not in self._lists], session)
        is_found = np.isfinite(norms)
        counts = {token: int(np.count_nonzero(is_found[self._list(token).rows])) for token in tokens}
        return counts, int(np.count_nonzero(is_found))

    def best(
        self,
        session: Session,
        ranked: Sequence[RankedWord],
        norms: NDArray[np.float64],
        *,
        excluded: Sequence[RankedWord],
        limit: int,
    ) -> ScoredIds:
        """Return the chunks with the highest scores, best first.

        Args:
            session: Of this state.
            ranked: Words, of which a chunk has any, and phrases, of which it has each.
            norms: Of the filter.
            excluded: What no chunk may have.
            limit: The number of chunks.
        """
        short = [one.token for one in (*ranked, *excluded) if one.token and one.count <= _SHORT_ROWS]
        self.read([token for token in dict.fromkeys(short) if token not in self._lists], session)
        if excluded:
            # Among those that are kept, so that the lengths of chunks whose words are read below go into it.
            norms = self._norms[_WITHOUT_EXCLUDED] = norms.copy()
            for one in excluded:
                norms[self.term_of(session, one).rows] = np.inf
        # A word whose list is at hand is taken as it is, and another one's is read once it is needed.
        terms: list[RankedTerm] = [
            self.term_of(session, one)
            if one.hits is not None or one.token in self._lists
            else _Term(self, session, one)
            for one in ranked
            if not one.is_phrase
        ]
        phrases = [self.term_of(session, one) for one in ranked if one.is_phrase]
        if phrases:
            # With all phrases, and any of the words where there are words.
            found = phrases[0].rows
            for phrase in phrases[1:]:
                found = np.intersect1d(found, phrase.rows)
            found = found[np.isfinite(norms[found])]
            for term in terms:
                term.add_found(found, self._sums, norms)
            if terms:
                found = found[self._sums[found] > 0]
            for phrase in phrases:
                phrase.add_found(found, self._sums, norms)
            scores, written = self._sums[found].copy(), [phrases[0].rows]
        else:
            found, scores, summed = bm25.best_rows(terms, norms, self._sums, limit)
            written = [term.rows for term in summed]
        _ = self._norms.pop(_WITHOUT_EXCLUDED, None)
        for each in written:
            self._sums[each] = 0.0
        ids = self.ids(found)
        order = np.lexsort((ids, -scores))[:limit]
        return ScoredIds(ids[order], scores[order])

    def term_of(self, session: Session, word: RankedWord) -> ScoredTerm:
        """Return a word with all of its chunks, which are read where they aren't known."""
        if word.hits is not None:
            places = self.places(np.array(word.hits.chunks, np.int64))
            order = np.argsort(places)
            places, weights = places[order], np.array(word.hits.weights, np.int32)[order]
            self._learn_words(places, np.array(word.hits.words, np.int32)[order])
            return _scored(places.astype(np.int32), weights, word.gain, 1.0)
        if word.token not in self._lists:
            self.read([word.token], session)
        known = self._list(word.token)
        peak = min(known.peak * max(self._mean / known.mean, 1.0), 1.0)
        return _scored(known.rows, known.weights, word.gain, peak)

    def is_worth_reading(self, word: RankedWord, chunks: int) -> bool:
        """Return whether a word was looked up in so many chunks that its list would have been read by now."""
        return self._looked_up[word.token] + chunks >= word.count

    def look_up(self, session: Session, word: RankedWord, places: NDArray[Any]) -> ScoredTerm:
        """Return a word with those of the chunks at *places* that have it, without reading its list."""
        self._looked_up[word.token] += len(places)
        row = session.execute(
            f"SELECT {_arrays('chunk', 'weight', 'words')} FROM postings WHERE term = %s AND chunk = ANY(%s::bigint[])",
            # As a text, since psycopg looks at each element of a list.
            (word.token, f"{{{','.join(map(str, self.ids(places).tolist()))}}}"),
            binary=True,
        ).fetchone()
        at, weights, words = self._arranged(*_unpack(row or ()))
        self._learn_words(at, words)
        return _scored(at, weights, word.gain, 1.0)

    def read(self, tokens: Sequence[int], session: Session) -> None:
        """Read the lists of words, in one query."""
        if not tokens:
            return
        found = session.execute(
            f"SELECT term, {_arrays('chunk', 'weight', 'words')} FROM postings WHERE term = ANY(%s) GROUP BY term",
            ([*tokens],),
            binary=True,
        )
        packed = {int(token): columns for token, *columns in found}
        for token in tokens:
            places, weights, words = self._arranged(*_unpack(packed.get(token, _NO_ROWS)))
            self._learn_words(places, words)
            counted = weights / (weights + postings.row_norms(words, self._total, self._all_words))
            self._lists[token] = known = _WordList(
                rows=places,
                weights=weights,
                peak=float(counted.max(initial=0.0)),
                mean=self._mean,
                seen=len(self.files),
                drops=self._drops,
            )
            self._list_bytes += known.size
            _ = self._looked_up.pop(token, 0)

    def _arranged(
        self, chunks: NDArray[Any], weights: NDArray[Any], words: NDArray[Any]
    ) -> tuple[NDArray[np.int32], NDArray[Any], NDArray[np.int32]]:
        """Return places, weights and lengths of rows of the postings, by place."""
        places = self.places(chunks)
        weights, words = weights.astype(np.int32), words.astype(np.int32)
        if len(places) > 1 and (np.diff(places) < 0).any():
            order = np.argsort(places)
            places, weights, words = places[order], weights[order], words[order]
        return places.astype(np.int32), _narrowed(weights), words

    def _list(self, token: int) -> _WordList:
        """Return a list as this state has it."""
        known = self._lists[token]
        self._lists.move_to_end(token)
        if known.drops != self._drops:
            self._list_bytes -= known.size
            is_kept = ~self._is_dropped[known.rows]
            new = [(at, n) for at, n in self._added.get(token, ()) if at >= known.seen and not self._is_dropped[at]]
            places, weights = np.array(new, np.int32).reshape(-1, 2).T
            known.rows = np.concatenate((known.rows[is_kept], places))
            known.weights = np.concatenate((known.weights[is_kept], _narrowed(weights)))
            own = weights / (weights + postings.row_norms(self._words[places], self._total, self._all_words))
            drift = max(self._mean / known.mean, 1.0)
            known.peak, known.mean = max(known.peak * drift, float(own.max(initial=0.0))), self._mean
            known.seen, known.drops = len(self.files), self._drops
            self._list_bytes += known.size
        return known

    def _learn_words(self, places: NDArray[Any], words: NDArray[np.int32]) -> None:
        """Take in the lengths of chunks; those whose list was read before have them already."""
        is_new = self._words[places] != words
        if not is_new.any():
            return
        places, words = places[is_new], words[is_new]
        self._words[places] = words
        for norms in self._norms.values():
            own = postings.row_norms(words, self._total, self._all_words)
            norms[places] = np.where(np.isinf(norms[places]), np.inf, own)

    def trim(self) -> None:
        """Forget the lists that weren't asked for longest, where all are too many."""
        while self._list_bytes > MAX_LIST_BYTES and len(self._lists) > 1:
            self._list_bytes -= self._lists.popitem(last=False)[1].size


class _Term:
    """A word of a question, whose list is read once it is needed."""

    def __init__(self, lists: StateLists, session: Session, word: RankedWord) -> None:
        self._lists = lists
        self._session = session
        self._word = word
        self._scored: ScoredTerm | None = None

    @property
    def bound(self) -> float:
        return self._scored.bound if self._scored else self._word.gain

    @property
    def cost(self) -> int:
        return self._scored.cost if self._scored else _READ_COST * self._word.count

    def is_looked_up(self, chosen: int) -> bool:
        if self._scored:
            return self._scored.is_looked_up(chosen)
        return not self._lists.is_worth_reading(self._word, chosen)

    @property
    def rows(self) -> NDArray[Any]:
        return self._read().rows

    def _read(self) -> ScoredTerm:
        if self._scored is None:
            self._scored = self._lists.term_of(self._session, self._word)
        return self._scored

    def add_found(self, chosen: NDArray[Any], sums: NDArray[np.float64], norms: NDArray[np.float64]) -> None:
        if self._scored is None and self.is_looked_up(len(chosen)):
            self._lists.look_up(self._session, self._word, chosen).add_to(sums, norms, is_first=False)
        else:
            self._read().add_found(chosen, sums, norms)

    def add_to(self, sums: NDArray[np.float64], norms: NDArray[np.float64], *, is_first: bool) -> None:
        self._read().add_to(sums, norms, is_first=is_first)


def _narrowed(weights: NDArray[np.int32]) -> NDArray[Any]:
    """Return weights in two bytes each where all fit."""
    return weights.astype(np.uint16) if int(weights.max(initial=0)) <= np.iinfo(np.uint16).max else weights


def _scored(places: NDArray[Any], weights: NDArray[Any], gain: float, peak: float) -> ScoredTerm:
    return ScoredTerm(rows=places, occurrences=weights, gain=gain, bound=gain * peak * (1 + bm25.ROUNDING), scale=1)


def _read_files(session: Session, generation: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Read the ids of the files that were published after a generation, and how many chunks each has."""
    sql = f"SELECT {_arrays('id', 'chunks')} FROM files WHERE generation > %s"
    row = session.execute(sql, (generation,), binary=True).fetchone()
    ids, counts = _unpack(row or ())
    return ids, counts


_ARRAY_HEAD: Final = 20
_NO_ROWS: Final[Sequence[bytes | None]] = (None, None, None)


def _arrays(*columns: str) -> str:
    """Return SQL for whole columns, each as one value as the server sends arrays: rows would take ten times as long."""
    return ", ".join(f"array_send(array_agg({name}::bigint))" for name in columns)


def _unpack(columns: Sequence[bytes | None]) -> list[NDArray[np.int64]]:
    """Return the columns that `_arrays` gave; None stands for no rows.

    Source: ``array_send`` in PostgreSQL's ``arrayfuncs.c``: five numbers, and before each element its length.
    """
    pairs = np.dtype([("length", ">i4"), ("value", ">i8")])
    read = [np.frombuffer(raw or b"", pairs, offset=_ARRAY_HEAD if raw else 0) for raw in columns]
    return [one["value"].astype(np.int64) for one in read]


def _unfit_error() -> StorageError:
    return StorageError(
        "the vault's tables in the database don't fit together",
        code="engine_failed",
        hint="`knap index --full` on the machine with the files writes them again",
    )
