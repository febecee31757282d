"""Be the object `obsidian` of scripts: typed methods, each a call of the host."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TypedDict, cast

JSON = None | bool | int | float | str | list["JSON"] | dict[str, "JSON"]


class Found(TypedDict):
    """Be a note that a search found."""

    path: str
    content: str
    """The whole note."""
    score: float
    """The higher, the better."""


class ObsidianError(Exception):
    """Say why the host didn't do what was asked; `code` is for programs, `hint` says what to try next."""

    def __init__(self, message: str, code: str = "error", hint: str = "") -> None:
        super().__init__(f"{message} ({hint})" if hint else message)
        self.code = code
        self.hint = hint


class Host:
    """Call the host's methods."""

    def __init__(self, call: Callable[[str], str]) -> None:
        self._call = call

    def __call__(self, method: str, arguments: Mapping[str, object]) -> object:
        """Call one method.

        Raises:
            ObsidianError: The host refuses, or fails.
            TypeError: An argument isn't JSON.
        """
        try:
            text = json.dumps({"method": method, "arguments": arguments}, ensure_ascii=False, allow_nan=False)
            text.encode()
        except (TypeError, ValueError) as error:
            raise TypeError(f"{method}: an argument isn't JSON: {error}") from None
        reply = cast("dict[str, object]", json.loads(self._call(text)))
        if "error" in reply:
            error = cast("dict[str, str]", reply["error"])
            raise ObsidianError(error.get("message", ""), error.get("code", "error"), error.get("hint", ""))
        return reply.get("result")


class Tools:
    """Hold the vault's tools, each a function: ``obsidian.tools.read_file(path="A.md")``."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def __dir__(self) -> list[str]:
        """Name the tools."""
        return cast("list[str]", self._host("tools", {}))

    def __getattr__(self, name: str) -> Callable[..., dict[str, JSON]]:
        """Give one of the tools."""
        if name.startswith("_"):
            raise AttributeError(name)

        def tool(*positional: object, **named: object) -> dict[str, JSON]:
            arguments = {**named, "": list(positional)} if positional else named
            return cast("dict[str, JSON]", self._host(f"tools.{name}", arguments))

        tool.__name__ = name
        return tool


class Obsidian:
    """Hold what a script can do with the vault."""

    Error = ObsidianError

    def __init__(self, host: Host, methods: Sequence[str]) -> None:
        self._host = host
        self._methods = frozenset(methods)
        self.tools = Tools(host)

    def search(
        self,
        query: str,
        limit: int = 10,
        path_filter: str | None = None,
        type_filter: str | None = None,
        vault: str | None = None,
        vaults: Sequence[str] | None = None,
    ) -> list[Found]:
        """Find notes by words and by meaning, best first, each with its whole content."""
        arguments = {"query": query, "limit": limit, "path_filter": path_filter, "type_filter": type_filter}
        arguments |= {"vault": vault, "vaults": None if vaults is None else list(vaults)}
        return cast("list[Found]", self._host("search", arguments))

    def read_note(self, path: str, vault: str | None = None) -> str:
        """Give a whole note; empty where there is none."""
        return cast("str", self._host("read_note", {"path": str(path), "vault": vault}))

    def read_notes(self, paths: Sequence[str], vault: str | None = None) -> dict[str, str]:
        """Give several whole notes at once, by their paths as given; missing ones are empty."""
        return cast(
            "dict[str, str]", self._host("read_notes", {"paths": [str(path) for path in paths], "vault": vault})
        )

    def list_notes(
        self,
        directory: str | None = None,
        recursive: bool = False,  # noqa: FBT001, FBT002 - the documented contract's
        vault: str | None = None,
    ) -> list[str]:
        """Name the notes of a folder and its folders, these with a slash at the end; recursive: all notes below it."""
        arguments = {"directory": None if directory is None else str(directory), "recursive": recursive, "vault": vault}
        return cast("list[str]", self._host("list_notes", arguments))

    def get_frontmatter(self, path: str, vault: str | None = None) -> dict[str, JSON]:
        """Give a note's properties; empty where there is none."""
        return cast("dict[str, JSON]", self._host("get_frontmatter", {"path": str(path), "vault": vault}))

    def get_hash(self, path: str, vault: str | None = None) -> str:
        """Give ``sha256:…`` of a note's bytes; empty where there is no note."""
        return cast("str", self._host("get_hash", {"path": str(path), "vault": vault}))

    def create_wikilink(self, path: str, vault: str | None = None) -> str:
        """Make a link to a note."""
        return cast("str", self._host("create_wikilink", {"path": str(path), "vault": vault}))

    def write_note(
        self,
        path: str,
        content: str,
        note_type: str | None = None,
        frontmatter: Mapping[str, JSON] | None = None,
        vault: str | None = None,
    ) -> dict[str, JSON]:
        """Propose a new note, or a new text of one that is there; a person decides on it."""
        arguments: dict[str, object] = {"path": str(path), "content": content, "note_type": note_type, "vault": vault}
        arguments["frontmatter"] = None if frontmatter is None else dict(frontmatter)
        return cast("dict[str, JSON]", self._host("write_note", arguments))

    def read_file(self, path: str) -> str:
        """Read a text file below one of the folders that the owner allows; in the profiles local and extended."""
        self._needs("read_file", "local")
        return cast("str", self._host("read_file", {"path": str(path)}))

    def http_get(self, url: str) -> str:
        """Get the text at an address of a host that the owner allows; in the profile extended."""
        self._needs("http_get", "extended")
        return cast("str", self._host("http_get", {"url": url}))

    def _needs(self, method: str, profile: str) -> None:
        if method not in self._methods:
            message = f"obsidian.{method} isn't there in this profile"
            raise ObsidianError(message, "refused", f"it needs the profile {profile}, and what the owner allows there")
