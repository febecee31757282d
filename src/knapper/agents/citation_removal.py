"""Remove a citation from an answer so that the sentence around it stays one."""

import re
from typing import Final

_CONJUNCTION: Final = r"(?:and|or|und|oder|et|ou|y|o|e|ed|en|of|&)"
_PREPOSITION_TEXT: Final = """
about at by called file from in into named note notes of on per see than to under via with
auf aus bei datei laut mit nach notiz siehe unter von zu
avec dans de du fichier par selon sur voir
con en nota por según ver
da di nel secondo su vedi
em segundo
met uit van volgens zie
"""
_PREPOSITIONS: Final = frozenset(_PREPOSITION_TEXT.split())
"""Words that need something after them, in the languages of the stop words."""
_LINE_START: Final = re.compile(r"[ \t>]*(?:(?:[-*+]|\d+[.)])[ \t]+)?(?:\**[\w ]{1,24}\**:\**[ \t]*)?")
_LINE_END: Final = re.compile(r"[ \t.,;]*")
_OPEN_BRACKET: Final = re.compile(
    r"[ \t]*\((?:(?:see(?: also)?|cf\.?|from|in|sources?:?|siehe|vgl\.?|aus|quellen?:?|voir|ver|vedi|zie)[ \t]+)?$",
    re.IGNORECASE,
)
_AFTER_CITATION: Final = re.compile(rf"(?<=[\])])[ \t]*(?:[,;]|,?[ \t]*\b{_CONJUNCTION})[ \t]*$", re.IGNORECASE)
_BEFORE_CITATION: Final = re.compile(rf"[ \t]*(?:[,;]|,?[ \t]*{_CONJUNCTION}\b)[ \t]*(?=!?\[\[)", re.IGNORECASE)
_DANGLING: Final = re.compile(rf"(?:[ \t]*[,;]|,?[ \t]+{_CONJUNCTION})[ \t]*$", re.IGNORECASE)
_CLAUSE_END: Final = re.compile(r"[ \t]*(?:[.,;:!?)\]\n]|$)")
_LAST_WORD: Final = re.compile(r"([^\W\d_]+)[ \t]*$")
_SENTENCE_START: Final = re.compile(r"(?:^|[.!?:\n]|(?:^|\n)[ \t>]*(?:[-*+]|\d+[.)]))[ \t]*$")
_MAX_CONTEXT: Final = 200
"""Characters on either side that are looked at, beside the line's beginning."""
_NEXT_WORD: Final = re.compile(rf"[ \t]+(?!{_CONJUNCTION}\b)([^\W\d_])")


def cut_citation(head: str, tail: str, shown: str) -> tuple[str, str]:
    """Join the text before and after a citation, without it.

    ``"Water it [[A]] (lines 1-2) and "`` and ``". I did."`` lose *and*. Where a sentence needs the citation, as in
    *according to …* or *… says*, its name stays as plain text.

    Args:
        head: The text before it.
        tail: The text after it.
        shown: The citation's name as plain text.

    Returns:
        The text before and after, to be joined.
    """
    line = head.rpartition("\n")[2]
    line_tail, newline, following = tail.partition("\n")
    if _LINE_START.fullmatch(line) and _LINE_END.fullmatch(line_tail):
        return head[: len(head) - len(line)], following if newline else ""
    before, after = line[-_MAX_CONTEXT:], tail[:_MAX_CONTEXT]
    bracket = _OPEN_BRACKET.search(before)
    if bracket and after.startswith(")"):
        return head[: len(head) - len(before) + bracket.start()], tail[1:]
    joined = _AFTER_CITATION.search(before) or (_DANGLING.search(before) if _CLAUSE_END.match(after) else None)
    if joined:
        return head[: len(head) - len(before) + joined.start()], tail
    following_citation = _BEFORE_CITATION.match(after)
    if following_citation:
        return head, tail[following_citation.end() :]
    return (head + shown, tail) if _is_needed(before, after) else (head.rstrip(" \t"), tail)


def _is_needed(before: str, after: str) -> bool:
    """Return whether the sentence would lack a part: what a preposition governs, or the subject of a verb."""
    last_word = _LAST_WORD.search(before)
    if last_word and last_word[1].casefold() in _PREPOSITIONS:
        return True
    next_word = _NEXT_WORD.match(after)
    return next_word is not None and next_word[1].islower() and _SENTENCE_START.search(before) is not None
