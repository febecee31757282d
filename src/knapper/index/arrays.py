"""Load numpy when an array is first needed: it takes 0.15 s, and reading, editing and most listing need none."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
else:

    class _DeferredNumpy:
        """Stand-in for the module that imports it at the first attribute."""

        def __getattr__(self, name: str) -> object:
            import numpy  # noqa: PLC0415 - the point of this module

            # Kept, so that only the first use of a name comes here. The import's own lock orders threads.
            value = self.__dict__[name] = getattr(numpy, name)
            return value

    np = _DeferredNumpy()

__all__ = ["np"]
