"""Draft what goes to the trash, and what comes back from it."""

from knapper.changes.disk.effects import TrashPlace
from knapper.changes.drafts import FileDraft
from knapper.changes.requests import Restore, Trash
from knapper.errors import ConflictError, NotFound
from knapper.vault import parser, paths, walk
from knapper.vault.paths import NotePath
from knapper.vault.view import View

FOLDER = ".trash"


def draft(view: View, request: Trash) -> FileDraft:
    """Draft the way to the trash that the vault's settings name; nothing is deleted for good.

    Raises:
        NotFound: There is no such file.
        ConflictError: The file isn't what the caller saw.
    """
    path = view.path(request.path)
    raw = view.read_bytes(path) if walk.kind_of(path) != "attachment" else None
    base = parser.content_hash(raw) if raw is not None else None
    if request.base and base and request.base != base:
        details: dict[str, object] = {"current_hash": base, "path": path}
        raise ConflictError(f"{path} changed meanwhile", hint="read it again", code="stale", details=details)
    where: TrashPlace = "system" if view.settings.trash_option == "system" else "vault"
    return FileDraft(
        path=path, base=base, before=raw, trash=where, needs=frozenset({"delete"}), anchored=bool(request.base)
    )


def restore(view: View, request: Restore) -> FileDraft:
    """Draft the way back out of the vault's trash.

    Raises:
        NotFound: The trash has no such file; the hint lists what it has of that name.
        ConflictError: There is a file where it would go.
    """
    inside = paths.parse(request.path.removeprefix(f"{FOLDER}/"), root=view.root)
    source = NotePath(f"{FOLDER}/{inside}")
    if not (view.root / source).is_file() or (view.root / source).is_symlink() or not view.policy.visible(inside):
        raise NotFound(f"the trash has no {inside}", hint=_others(view, inside))
    target = view.new_path(request.destination or inside)
    return FileDraft(path=source, base=None, target=target, needs=frozenset({"create"}), anchored=True)


def _others(view: View, wanted: NotePath) -> str:
    folder = view.root / FOLDER
    found = sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())
    alike = [
        name
        for name in found
        if paths.name_key(paths.stem(wanted)) in paths.name_key(name) and view.policy.visible(name)
    ]
    return (
        f"it has: {', '.join(alike[:5])}" if alike else "what went to the system's trash comes back there, or by undo"
    )
