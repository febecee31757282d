"""Measure search."""

import dataclasses
import time
from pathlib import Path

import click

from knapper import app
from knapper.cli import evaluation, options, output, setup
from knapper.cli.codes import ExitCode
from knapper.cli.evaluation import Collection
from knapper.cli.options import GlobalOptions
from knapper.cli.render import indexing, notes
from knapper.config import Vault
from knapper.index.search import SearchMode
from knapper.tools import search
from knapper.tools.context import Context

_DEPTH = 10
"""Notes that are asked for; no measure looks further down."""


@click.command(
    "eval",
    context_settings=options.CONTEXT_SETTINGS,
    epilog=options.examples(
        ("knap eval mine", "mine/vault, mine/queries.jsonl and mine/notes.tsv"),
        ("knap eval mine --mode keyword", "by words only"),
        ("knap eval mine --json", "for programs"),
    ),
)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--mode", type=click.Choice(search.SEARCH_MODES), default="hybrid", show_default=True, help="Ranking method."
)
@options.shared_options
@click.pass_obj
def command(said: GlobalOptions, folder: Path, mode: SearchMode) -> ExitCode:
    """Measure how well search finds judged notes.

    DIR contains `vault/`, `queries.jsonl` (one object {"_id", "text"} per line) and `notes.tsv` (query id, note path
    and grade, separated by tabs). The index is kept apart from those of your vaults, so that the next run is faster.
    """
    collected = evaluation.read_collection(folder)
    config = setup.read_settings(said)
    vault = Vault(name=folder.resolve().name, path=collected.vault.resolve())
    eval_settings = dataclasses.replace(config, choice=vault, state_dir=config.state_dir / "eval")
    with app.open_vault(eval_settings) as context:
        with indexing.show_progress(said) as on_progress:
            context.index.refresh(progress=on_progress)
            context.index.embed(progress=on_progress)
        rankings, times = _run_queries(context, collected, mode)
    result = {
        "success": True,
        "mode": mode,
        "queries": len(collected.queries),
        **{name: round(value, 4) for name, value in evaluation.average_metrics(rankings, collected.grades).items()},
        "p50_ms": round(evaluation.percentile(times, 0.5), 2),
        "p95_ms": round(evaluation.percentile(times, 0.95), 2),
    }
    if said.as_json:
        output.write_json(result)
    else:
        output.write(said, evaluation.render_metrics(result))
    return ExitCode.OK


def _run_queries(context: Context, judged: Collection, mode: SearchMode) -> tuple[dict[str, list[str]], list[float]]:
    """Run every query; return the notes found, and the times in milliseconds."""
    rankings: dict[str, list[str]] = {}
    times: list[float] = []
    for name, text in judged.queries.items():
        start = time.perf_counter()
        answer = search.search_vault(context, text, _DEPTH, mode, per_note=1)
        times.append((time.perf_counter() - start) * 1000)
        rankings[name] = [str(passage["source"]) for passage in notes.get_passages(answer)]
    return rankings, times
