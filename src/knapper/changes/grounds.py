"""Answer what the rules have to know of a vault."""

from collections.abc import Callable
from dataclasses import dataclass

from knapper.errors import RefusedError
from knapper.vault import files
from knapper.vault.paths import NotePath
from knapper.vault.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Hold the questions that the rules ask; a test answers them by itself."""

    visible: Callable[[NotePath], bool]
    """Whether the client may know of a path; ignored ones count as not visible."""
    real: Callable[[NotePath], NotePath]
    """Where the bytes of a path lie, links followed; raises `RefusedError` where that is outside the vault."""

    def place(self, path: NotePath) -> NotePath | None:
        """Tell where the bytes of a path lie; None where that is outside the vault."""
        try:
            return self.real(path)
        except RefusedError:
            return None


def of(view: View) -> Ground:
    """Answer from a vault as the client sees it."""

    def real(path: NotePath) -> NotePath:
        return files.find_path(view.root, path, must_exist=False).target

    return Ground(visible=view.visible, real=real)
