"""Join the guest to its world; the build runs this, and keeps the memory as it is then.

The build puts this file beside the guest's package and the pure Python part of PyYAML.
"""

import wit_world  # pyright: ignore[reportMissingImports]

from knapper.codemode.guest import preparing

preparing.prepare()


class WitWorld:
    """Implement the world."""

    def run(self, job: str) -> str:
        """Run one script."""
        from knapper.codemode.guest import interpreter  # noqa: PLC0415 - not before all is prepared

        return interpreter.run(job, wit_world.call, wit_world.emit)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
