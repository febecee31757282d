"""Show how far a long piece of work has come: a bar for a person at a terminal, lines elsewhere."""

from collections.abc import Generator
from contextlib import contextmanager

from knapper.cli import output
from knapper.cli.options import Options
from knapper.cli.render.phases import Lines
from knapper.index.refresh import Progress


@contextmanager
def shown(options: Options) -> Generator[Progress | None]:
    """Show progress on the error stream, as far as the options let it."""
    if options.quiet or options.as_json:
        yield None
    elif output.is_terminal():
        from knapper.cli.render.bar import Bar  # noqa: PLC0415  # brings rich, 70 ms that only a bar should cost

        with Bar(colour=output.wants_colour(options)) as bar:
            yield bar
    else:
        yield Lines()
