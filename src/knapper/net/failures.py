"""Name what can go wrong on the way to a page.

No message holds an address that a name resolved to, nor text that a server sent: a redirect or a header is
written by strangers. The tree::

    KnapError
    ├── CallerError
    │   ├── BadAddress    the address can't be used as it is written
    │   ├── NoAnswer      the server can't be reached, is slow, breaks off, or sends one elsewhere without end
    │   ├── BadStatus     the server says that there is no such page, or that it gives none
    │   ├── TooLarge      the answer is longer than allowed
    │   └── WrongType     the answer is of a kind that nobody here can read
    ├── RefusedError
    │   └── NotPublic     the address leads into a private network, or isn't one that the owner listed
    └── SetupError
        └── SearchFailed  the search provider doesn't answer as it should
"""

from knapper.errors import BadInput, CallerError, NotFound, RefusedError, SetupError


class BadAddress(BadInput):
    """Say that an address can't be used as it is written."""

    code = "bad_address"


class NotPublic(RefusedError):
    """Say that an address leads to a place that requests may not go to."""

    code = "not_public"


class NoAnswer(CallerError):
    """Say that no whole answer came."""

    code = "no_answer"


class BadStatus(NotFound):
    """Say that the server gave no page; ``details`` hold its ``status``."""

    code = "http_status"


class TooLarge(CallerError):
    """Say that an answer is longer than allowed."""

    code = "too_large"


class WrongType(CallerError):
    """Say that an answer is of a kind that isn't read."""

    code = "content_type"


class SearchFailed(SetupError):
    """Say that a search provider doesn't answer as it should."""

    code = "search_failed"
