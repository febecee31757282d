"""What the owner hides from everybody: it isn't even in the index."""

from pathlib import Path
from typing import NoReturn

import pytest

from knapper import app, config
from knapper.errors import NotFound
from knapper.tools import links
from knapper.tools import notes as tools_notes
from knapper.tools.context import Context, resolve_folder
from knapper.tools.search import search_vault
from knapper.vault.access import Policy
from tests.index import worlds


def no_writer() -> NoReturn:
    raise AssertionError("asking opens nothing to write with")


def test_what_the_owner_hides_from_everybody_is_not_indexed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n", "secret/b.md": "alpha beta\n"})
    (tmp_path / "c.toml").write_text(f'[vaults.v]\npath = "{root}"\nhidden = ["secret/"]\n')
    monkeypatch.setenv("KNAP_CONFIG", str(tmp_path / "c.toml"))
    with app.open_vault(config.load({})) as context:
        found = search_vault(context, "beta", 50, "keyword")
        known = set(context.index.store.file_states())

    assert known == {"a.md"}
    assert found["results"] == []


def test_a_link_into_a_hidden_folder_shows_a_client_nothing_and_counts_nothing(tmp_path: Path) -> None:
    notes = {"a.md": "alpha\n", "o.md": "alpha\n", "secret/b.md": "alpha [[o]] #hush\n", "open/x.md": "alpha\n"}
    root = worlds.fill(tmp_path / "v", notes)
    (root / "open/link.md").symlink_to("../secret/b.md")
    index = worlds.engine(root, tmp_path / "s", worlds.WordEmbedder())
    index.refresh()
    guest = Policy(client="guest", hidden=("secret/",))
    with Context(
        vault="v", view=index.view.with_policy(guest), index=index, open_writer=no_writer, close=index.close
    ) as context:
        into = links.find_backlinks(context, "o")
        (root / "secret/b.md").write_text("alpha beta\n")
        pending = index.freshen(policy=guest)
        tagged = tools_notes.notes_with_tag(context, "hush")

    assert (into["results"], into["total"]) == ([], 0)
    assert tagged == []
    assert (pending.stale, pending.pending) == (0, 0)


def test_the_size_of_the_index_is_for_those_who_see_all_of_it(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n", "secret/b.md": "beta\n"})
    index = worlds.engine(root, tmp_path / "s", worlds.WordEmbedder())
    index.refresh()
    policies = [Policy(client="cli"), Policy(client="guest", hidden=("secret/",))]
    views = [index.view.with_policy(one) for one in policies]
    contexts = [Context(vault="v", view=one, index=index, open_writer=no_writer, close=index.close) for one in views]
    with contexts[0]:
        whole, part = (tools_notes.vault_status(context)["size_bytes"] for context in contexts)

    assert whole > 0
    assert part == 0


def test_a_hidden_note_of_the_same_name_makes_no_link_ambiguous(tmp_path: Path) -> None:
    notes = {"a.md": "[[b]] [[c]]\n", "secret/b.md": "x\n", "open/b.md": "x\n", "open/c.md": "x\n", "z/c.md": "x\n"}
    index = worlds.engine(worlds.fill(tmp_path / "v", notes), tmp_path / "s", worlds.WordEmbedder())
    index.refresh()
    view = index.view.with_policy(Policy(client="guest", hidden=("secret/",)))
    with Context(vault="v", view=view, index=index, open_writer=no_writer, close=index.close) as context:
        found = [links.link_answer(context, edge) for edge in index.graph.outgoing(context.view.path("a.md"))]

    assert [(one["leads_to"], one.get("also_fits")) for one in found] == [
        ("open/b.md", None),
        ("z/c.md", ["open/c.md"]),
    ]


def test_a_folder_whose_files_are_all_hidden_one_by_one_isnt_there(tmp_path: Path) -> None:
    root = worlds.fill(
        tmp_path / "v", {"a.md": "alpha\n", "secret/b.md": "beta\n", "part/c.md": "x\n", "part/d.md": "x\n"}
    )
    index = worlds.engine(root, tmp_path / "s", worlds.WordEmbedder())
    index.refresh()
    view = index.view.with_policy(Policy(client="guest", hidden=("secret/b.md", "part/c.md")))
    with Context(vault="v", view=view, index=index, open_writer=no_writer, close=index.close) as context:
        errors: list[dict[str, object]] = []
        for folder in ("secret", "secrex"):
            with pytest.raises(NotFound) as listed:
                _ = resolve_folder(context, folder)
            with pytest.raises(NotFound) as named:
                _ = context.view.locate(folder)
            errors.append({"listed": listed.value.as_dict(), "named": named.value.as_dict()})
        with pytest.raises(NotFound) as partly:
            _ = context.view.locate("part")

    assert str(errors[0]).replace("secret", "secrex") == str(errors[1])
    assert (errors[0]["listed"], partly.value.code) == (
        {**listed.value.as_dict(), "error": "no folder 'secret' in the vault"},
        "is_folder",
    )
