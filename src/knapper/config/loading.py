"""Join defaults, files, environment and flags into settings; a later one of these wins."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, cast

import platformdirs

from knapper.config import clients, environment, files, layers, values, vaults
from knapper.config.files import Document
from knapper.config.layers import Found, Sources
from knapper.config.sections import agents, audio, model, runs, scripts, server, web
from knapper.config.setting import count, text
from knapper.config.settings import Embeddings, Journal, Origin, Search, Settings, Vault
from knapper.config.table import CONFIG_ENV, SETTINGS
from knapper.errors import SetupError

APP = "knapper"
_NO_FLAGS: Mapping[str, str] = {}


def load(
    flags: Mapping[str, str] = _NO_FLAGS, *, config_file: str = "", env_file: str = "", cwd: Path | None = None
) -> Settings:
    """Read every source of settings.

    Args:
        flags: By setting's name: ``{"default_vault": "~/Notes"}`` is ``--vault ~/Notes``; empty ones aren't given.
        config_file: The TOML file that a flag names; it has to be there.
        env_file: The file of NAME=value lines that a flag names; it has to be there.
        cwd: Where relative paths start; the current folder by default.

    Raises:
        SetupError: A file can't be read, or says something that isn't a setting. That no vault can be chosen is told
            only when the vault is asked for.
    """
    cwd = cwd or _here()
    names = [CONFIG_ENV, *(name for setting in SETTINGS for name in setting.env)]
    environ = environment.read(names)
    where = _locate(config_file, environ, cwd)
    document = files.read_toml(where) if config_file or files.is_there(where) else None
    env_path = values.expand(env_file, cwd) if env_file else where.with_name(".env")
    secrets = files.read_env(env_path) if env_file or files.is_there(env_path) else None
    sources = Sources(
        flags=flags,
        environment=environ,
        env_file=secrets,
        document=document,
        defaults={"state_dir": str(platformdirs.user_data_path(APP, appauthor=False))},
        cwd=cwd,
    )
    return _settings(sources, where)


def locate(config_file: str = "", *, cwd: Path | None = None) -> Path:
    """Tell where the configuration file is, or would be, without reading it.

    Args:
        config_file: The one that a flag names.
        cwd: Where relative paths start; the current folder by default.
    """
    return _locate(config_file, environment.read([CONFIG_ENV]), cwd or _here())


def _here() -> Path:
    try:
        return Path.cwd()
    except OSError as error:
        raise SetupError(
            "the current folder isn't there any more", code="no_folder", hint="go to another one"
        ) from error


def _locate(config_file: str, environ: Mapping[str, str], cwd: Path) -> Path:
    named = config_file or environ.get(CONFIG_ENV, "")
    if named:
        return values.expand(named, cwd)
    return platformdirs.user_config_path(APP, appauthor=False) / "config.toml"


def _settings(sources: Sources, where: Path) -> Settings:
    document = sources.document
    sections = layers.sections(document) if document else {}
    found = layers.find(sources)
    said = {name: each.value for name, each in found.items()}
    known = vaults.configured(document, sections[layers.VAULTS]) if document else ()
    allowed = clients.configured(document, sections[layers.CLIENTS]) if document else ()
    wanted = found["default_vault"]
    is_named = bool(sources.flags.get("default_vault"))
    choice, why = vaults.choose(
        text(said, "default_vault"),
        base=wanted.base,
        vaults=known,
        config_file=where,
        place="" if is_named else wanted.source,
    )
    _refuse_env_in_vault(sources.env_file, [*known, *([choice] if isinstance(choice, Vault) else [])])
    embeddings = Embeddings(
        kind=cast("Literal['static', 'endpoint', 'onnx', 'none']", text(said, "embeddings.kind")),
        model=text(said, "embeddings.model"),
        base_url=text(said, "embeddings.base_url"),
        api_key=text(said, "embeddings.api_key"),
    )
    return Settings(
        choice=choice,
        passed_by=None if is_named or isinstance(choice, SetupError) else vaults.around(sources.cwd, choice),
        vaults=known,
        clients=allowed,
        state_dir=Path(text(said, "state_dir")),
        embeddings=embeddings,
        search=Search(fusion=cast("Literal['convex', 'rrf']", text(said, "search.fusion"))),
        model=model.read(said),
        audio=audio.read(said),
        web=web.read(said),
        scripts=scripts.read(said),
        agents=agents.read(said),
        runs=runs.read(said),
        proposal_days=count(said, "proposals.expire_days"),
        journal=Journal(max_mb=count(said, "journal.max_mb"), max_age_days=count(said, "journal.max_age_days")),
        commits_to_git=text(said, "git.commit") == "yes",
        server=server.read(said),
        index_interval_minutes=count(said, "index.interval_minutes"),
        config_file=where,
        env_file=sources.env_file.path if sources.env_file else None,
        origins=_origins(found, choice, why, layers.stated(document, sections) if document else ()),
    )


def _origins(
    found: Mapping[str, Found], choice: Vault | SetupError, why: str, stated: Sequence[Origin]
) -> tuple[Origin, ...]:
    chosen = Origin(
        name="vault",
        value=str(choice.path) if isinstance(choice, Vault) else "",
        source=why or (found["default_vault"].source if isinstance(choice, Vault) else choice.message),
        doc="The vault that a command works on now.",
    )
    return (chosen, *(layers.origin(each) for each in found.values()), *stated)


def _refuse_env_in_vault(env_file: Document | None, known: Sequence[Vault]) -> None:
    for vault in known if env_file else ():
        if env_file and vaults.holds(vault.path, env_file.path):
            raise SetupError(
                f"the file of secrets {env_file.path} lies inside the vault {vault.path}",
                code="env_in_vault",
                hint="move it out of the vault, where no tool reads or writes, and name it with --env-file",
            )
