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
from knapper.cli.render import indexing
from knapper.config import Vault
from knapper.index.filters import Filter
from knapper.index.search import SearchMode, SearchRequest
from knapper.tools import shapes
from knapper.tools.context import Context

_DEPTH = 10
"""Notes that are asked for; no measure looks further down."""


@click.command(
    "eval",
    context_settings=options.CONTEXT_SETTINGS,
    epilog=options.examples(
        ("knap eval mine", "mine/vault, mine/queries.jsonl and mine/notes.tsv"),
        ("knap eval mine --mode keyword", "by words only"),
        ("knap eval mine --per-query", "each query by itself, the worst first"),
        ("knap eval mine --per-query --json > a.json", "to compare with another configuration"),
        ("knap eval mine --mode keyword --against a.json", "query by query, with a test"),
    ),
)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--mode", type=click.Choice(shapes.SEARCH_MODES), default="hybrid", show_default=True, help="Ranking method."
)
@click.option("--per-query", is_flag=True, help="Also show the measures of each query.")
@click.option(
    "--against",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Compare with the result of another configuration, made by --per-query --json.",
)
@options.shared_options
@click.pass_obj
def command(said: GlobalOptions, folder: Path, mode: SearchMode, *, per_query: bool, against: Path | None) -> ExitCode:
    """Measure how well search finds judged notes.

    DIR contains `vault/`, `queries.jsonl` (one object {"_id", "text"} per line) and `notes.tsv` (query id, note path
    and grade, separated by tabs). The index is kept apart from those of your vaults, so that the next run is faster.
    """
    before = evaluation.read_measures(against) if against else None
    collected = evaluation.read_collection(folder)
    rankings, times = _search_collection(said, folder, collected, mode)
    by_query = {
        # Rounded as in the result that another one is compared with.
        query: {name: round(value, 4) for name, value in values.items()}
        for query, values in evaluation.measure_queries(rankings, collected.grades).items()
    }
    rows = [
        {
            "id": query,
            "text": collected.queries[query],
            **values,
            "ms": round(times[query], 2),
            "found": list(rankings[query]),
        }
        for query, values in by_query.items()
    ]
    result: dict[str, object] = {
        "success": True,
        "mode": mode,
        "queries": len(collected.queries),
        **{name: round(value, 4) for name, value in evaluation.average_metrics(rankings, collected.grades).items()},
        "p50_ms": round(evaluation.percentile(list(times.values()), 0.5), 2),
        "p95_ms": round(evaluation.percentile(list(times.values()), 0.95), 2),
    }
    texts = [evaluation.render_metrics(result)]
    if per_query:
        result["per_query"] = rows
        texts.append(evaluation.render_queries(rows))
    if before is not None:
        differences = evaluation.compare_measures(before, by_query)
        shared = sum(query in before for query in by_query)
        result["comparison"] = {
            "against": str(against),
            "queries": shared,
            **{name: one.as_dict() for name, one in differences.items()},
        }
        texts.append(evaluation.render_differences(differences, shared))
    if said.as_json:
        output.write_json(result)
    else:
        output.write(said, "\n\n".join(texts))
    return ExitCode.OK


def _search_collection(
    said: GlobalOptions, folder: Path, collected: Collection, mode: SearchMode
) -> tuple[dict[str, list[str]], dict[str, float]]:
    """Index the collection's vault, and run every query."""
    config = setup.read_settings(said)
    vault = Vault(name=folder.resolve().name, path=collected.vault.resolve())
    eval_settings = dataclasses.replace(config, choice=vault, state_dir=config.state_dir / "eval")
    with app.open_vault(eval_settings) as context:
        with indexing.show_progress(said) as on_progress:
            context.index.refresh(progress=on_progress)
            context.index.embed(progress=on_progress)
        return _run_queries(context, collected, mode)


def _run_queries(
    context: Context, judged: Collection, mode: SearchMode
) -> tuple[dict[str, list[str]], dict[str, float]]:
    """Run every query; return the notes found, and the times in milliseconds.

    The times are those of searching alone: the index was just brought up to date, so the vault isn't looked at again,
    and the first query, which reads the vectors from the disk, is run twice.
    """
    rankings: dict[str, list[str]] = {}
    times: dict[str, float] = {}
    where = context.restrict(Filter())
    first = next(iter(judged.queries), None)
    for name, text in [*([(first, judged.queries[first])] if first else []), *judged.queries.items()]:
        question = SearchRequest(text=text, mode=mode, limit=_DEPTH, per_note=1, where=where, merges_copies=True)
        start = time.perf_counter()
        hits = context.index.search(question).hits
        times[name] = (time.perf_counter() - start) * 1000
        rankings[name] = list(dict.fromkeys(row.note for hit in hits for row in (hit.row, *hit.copies)))
    return rankings, times
