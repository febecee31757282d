"""Make a better model for search by meaning, out of an installed package."""

import click

from knapper.app import e5_model
from knapper.cli import options, output, setup
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode
from knapper.cli.render import indexing
from knapper.config import editing


@click.command(
    "e5",
    epilog=options.examples(
        ("knap e5", "makes the model, and shows how long this vault would take"),
        ("knap e5 --use", "and searches with it from now on"),
        ("knap config unset embeddings.kind", "back to the built-in table"),
    ),
)
@click.option("--use", is_flag=True, help="Set embeddings.kind to e5: the index gets new vectors in the background.")
@click.option("--anew", is_flag=True, help="Make the model again even if there is one.")
@options.pass_options
def command(global_options: GlobalOptions, *, use: bool, anew: bool) -> ExitCode:
    """Make a transformer for search across languages.

    The model is multilingual-e5-small. It is made on this machine, out of weights that the extra `e5` brings; nothing
    is downloaded. What was made is compared with the weights. Then some passages of the vault are embedded, to show how
    long all of them would take.
    """
    settings = setup.read_settings(global_options)
    record, is_new = e5_model.make_model(settings, anew=anew)
    folder = e5_model.model_folder(settings)
    with setup.open_vault(global_options) as context:
        time = e5_model.measure_time(context.index.store, folder)
    is_used = settings.embeddings.kind == "e5"
    if use and not is_used:
        _ = editing.set_values(settings.config_file, {("embeddings", "kind"): "e5"})
    if global_options.as_json:
        output.write_json(
            {
                "success": True,
                "folder": str(folder),
                "made": is_new,
                "cosine": record.cosine,
                "used": use or is_used,
                "vault": time.as_dict() if time else None,
            }
        )
        return ExitCode.OK
    made = "was made" if is_new else "is there"
    output.write(global_options, f"multilingual-e5-small {made}: {output.plain(str(folder))}")
    output.write(global_options, f"its vectors have a cosine of {record.cosine:.3f} to those of its weights, or more")
    if time:
        output.write(global_options, indexing.describe_embed_time(time))
    if use or is_used:
        output.note(global_options, "`knap index` makes the new vectors now; a server or `knap watch` does by itself")
    else:
        output.note(global_options, "to search with it: knap e5 --use")
    return ExitCode.OK
