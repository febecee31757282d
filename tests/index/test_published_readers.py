"""Who reads a published vault sees what it may, through the program and past it, and changes nothing."""

import secrets
from collections.abc import Generator
from pathlib import Path

import pytest

from knapper.errors import Ambiguous, BadInput, KnapError, NotFound, RefusedError, SetupError, StorageError
from knapper.index.catalog import ListingQuery
from knapper.index.documents import Filter
from knapper.index.postgres import connection, publish, snapshot
from knapper.index.postgres.connection import PostgresServer, schema_of, split_password
from knapper.index.postgres.publish import Publisher
from knapper.index.search import SearchRequest
from knapper.vault.access import Policy
from knapper.vault.paths import NotePath
from tests.index import published
from tests.index.published import Team
from tests.postgres import LocalServer

pytestmark = pytest.mark.timeout(60)
NOTES = {
    "Secret/Launch.md": "---\naliases: [Zebraname]\ntags: [zebratag]\n---\n# Zebraheading\n\nThe zebraword is 42.\n",
    "Open/Cats.md": "---\naliases: [Kitty]\ntags: [pet]\n---\n# Cats\n\n"
    "Cats like tomatoes and [[Launch]] and [[Dogs]].\n",
    "Open/Dogs.md": "# Dogs\n\nDogs bark. #pet\n",
    "Open/photo.png": "no picture",
}
DOGS = NotePath("Open/Dogs.md")
HIDING = Policy(client="bot", hidden=("Secret/",))


@pytest.fixture
def roles(postgres: LocalServer) -> dict[str, str]:
    """Make a role that sees all, one from which a folder is hidden, and one that isn't let in."""
    names = {kind: f"{kind}_{secrets.token_hex(4)}" for kind in ("open", "bot", "stranger")}
    with postgres.connect() as session:
        for name in names.values():
            session.execute(f"CREATE ROLE {name} LOGIN")
    return names


@pytest.fixture
def team(tmp_path: Path, postgres: LocalServer, roles: dict[str, str]) -> Generator[Team]:
    readers = {roles["open"]: None, roles["bot"]: HIDING}
    with published.open_team(tmp_path, postgres.address(), NOTES, readers=readers) as team:
        yield team


def dump(postgres: LocalServer, team: Team, role: str) -> str:
    """Return all that a role can read of the vault past the program."""
    with postgres.connect(role) as session:
        names = [
            name for (name,) in session.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (team.schema,))
        ]
        assert len(names) >= 8
        rows = [session.execute(f'SELECT * FROM "{team.schema}"."{name}"').fetchall() for name in names]
        rows.append(session.execute("SELECT * FROM pg_stats WHERE schemaname = %s", (team.schema,)).fetchall())
    return repr(rows).lower()


def test_a_role_cannot_get_at_a_hidden_note_past_the_program(
    team: Team, postgres: LocalServer, roles: dict[str, str]
) -> None:
    seen_by_all, seen_by_bot = (dump(postgres, team, roles[kind]) for kind in ("open", "bot"))
    with postgres.connect(roles["bot"]) as session:
        session.execute(f'SET search_path TO "{team.schema}", public')
        counts = [
            session.execute(f"SELECT count(*) FROM {sql}").fetchall()[0][0]
            for sql in (
                "files WHERE path LIKE 'Secret%'",
                "postings p JOIN terms t ON t.id = p.term WHERE t.term LIKE 'zebra%'",
                "(SELECT * FROM vectors ORDER BY vector <#> (SELECT vector FROM vectors LIMIT 1) LIMIT 99) AS v"
                " WHERE (v.chunk >> 20) NOT IN (SELECT id FROM files)",
                "terms WHERE term LIKE 'zebra%'",
            )
        ]
        for forbidden in (
            "UPDATE sight SET mask = NULL",
            "DELETE FROM files",
            "INSERT INTO meta VALUES ('writer', 'x')",
            "ALTER TABLE files DISABLE ROW LEVEL SECURITY",
        ):
            with pytest.raises(Exception, match=r"permission denied|must be owner"):
                session.execute(forbidden)

    for word in ("zebraword", "zebraname", "zebratag", "zebraheading", "secret/launch"):
        assert word in seen_by_all
        assert word not in seen_by_bot
    assert "tomatoes" in seen_by_bot
    assert counts == [0, 0, 0, 0]


def test_a_reader_with_a_policy_finds_what_it_may_and_nothing_else(team: Team, roles: dict[str, str]) -> None:
    reader = team.reader(roles["bot"])
    reader.refresh()
    for question in ("zebraword", "zebraname", "zebraheading", "launch", "zebra*", '"the zebraword"'):
        for mode in ("keyword", "hybrid", "semantic"):
            result = reader.search(SearchRequest(text=question, mode=mode))
            assert {hit.row.note for hit in (*result.hits, *result.nearest)} <= {"Open/Cats.md", "Open/Dogs.md"}
            assert "zebra" not in " ".join(result.remarks)
    for raw in ("Secret/Launch.md", "Launch", "Zebraname"):
        with pytest.raises(NotFound):
            reader.view.read(reader.view.locate(raw))
    listed = reader.catalog.find(ListingQuery()).entries

    assert {entry.path for entry in listed} == {"Open/Cats.md", "Open/Dogs.md", "Open/photo.png"}
    assert [tag.name for tag in reader.catalog.tag_counts(Filter()).tags] == ["pet"]
    assert (reader.status().notes, reader.status().chunks) == (2, 3)
    assert b"zebra" not in (reader.folder / "index.db").read_bytes()


def test_a_policy_of_the_readers_own_clients_is_a_condition_of_every_query(team: Team) -> None:
    reader = team.reader()
    reader.refresh()
    view = reader.view.with_policy(HIDING)
    hidden = Filter(policy=HIDING)

    assert published.hits(reader, "zebraword", "keyword", hidden) == []
    assert published.hits(reader, "zebraword", "keyword")
    assert {note for _, note, _ in published.hits(reader, "zebraword cats", "semantic", hidden)} <= {
        "Open/Cats.md",
        "Open/Dogs.md",
    }
    assert {stat.path for stat in view.list_files()} == {"Open/Cats.md", "Open/Dogs.md", "Open/photo.png"}
    for raw in ("Secret/Launch.md", "secret/launch.md", "Zebraname", "Launch"):
        with pytest.raises(NotFound) as raised:
            view.locate(raw)
        assert "Zebra" not in raised.value.hint
    with pytest.raises(NotFound):
        view.read_bytes("Secret/Launch.md")


def test_a_changed_policy_holds_after_the_next_publishing(
    team: Team, postgres: LocalServer, roles: dict[str, str]
) -> None:
    reader = team.reader(roles["open"])
    reader.refresh()
    narrowed = Publisher(team.publisher.server, readers={roles["open"]: HIDING})
    narrowed.publish(team.engine.store, team.engine.view, model="words")
    reader.refresh()
    after_narrowing = {stat.path for stat in reader.view.list_files()}
    with pytest.raises(Exception, match="permission denied"):
        dump(postgres, team, roles["bot"])
    team.publisher.publish(team.engine.store, team.engine.view, model="words")
    reader.refresh()

    assert after_narrowing == NOTES.keys() - {"Secret/Launch.md"}
    assert {stat.path for stat in reader.view.list_files()} == NOTES.keys()
    assert "zebra" not in dump(postgres, team, roles["bot"])


def test_a_note_that_is_moved_into_a_hidden_folder_leaves_a_readers_mirror(team: Team, roles: dict[str, str]) -> None:
    reader = team.reader(roles["bot"])
    reader.refresh()
    (team.root / "Open/Dogs.md").rename(team.root / "Secret/Dogs.md")
    team.publish()
    reader.refresh()

    assert {stat.path for stat in reader.view.list_files()} == {"Open/Cats.md", "Open/photo.png"}
    assert published.hits(reader, "bark", "keyword") == []


def test_a_role_that_sees_little_gets_all_of_it_where_the_graph_gives_up(
    team: Team, postgres: LocalServer, roles: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = {f"Secret/{number}.md": f"rain wind storm {number}\n" for number in range(300)}
    shown = {f"Open/{number}.md": f"rain on the roof {number}\n" for number in range(9)}
    monkeypatch.setattr(publish, "MIN_GRAPH_VECTORS", 2)
    monkeypatch.setattr(snapshot, "_GRAPH_CANDIDATES", 1)
    team.save({**hidden, **shown})
    with postgres.connect() as session:
        session.execute("LOAD 'vector'")
        # As with many vectors: the server follows the graph, and gives up before all of them.
        for setting in ("hnsw.max_scan_tuples = 1", "enable_seqscan = off", "enable_sort = off"):
            session.execute(f"ALTER ROLE {roles['bot']} SET {setting}")
    reader = team.reader(roles["bot"])
    reader.refresh()
    question = team.embedder.query("rain wind storm")

    with published.snapshot(reader) as opened:
        nearest = opened.nearest(question, Filter(), limit=30)()
        names = {path for path, _ in (published.places(opened)[i] for i in nearest)}
        assert opened.state.meta["graph"] == "1"

    assert names == set(shown)


def test_a_role_that_is_not_let_in_gets_an_error_that_says_who_lets_it_in(team: Team, roles: dict[str, str]) -> None:
    with pytest.raises(StorageError, match="not for this role") as raised:
        team.reader(roles["stranger"]).refresh()

    assert "index.readers" in raised.value.hint


def test_listings_links_and_names_are_those_of_the_machine_with_the_files(team: Team) -> None:
    reader = team.reader()
    reader.refresh()
    edges = [(edge.target, edge.path) for edge in reader.graph.outgoing(NotePath("Open/Cats.md"))]
    ids = [entry.id for entry in reader.catalog.find(ListingQuery(where=Filter(kinds=("note",)))).entries]

    assert edges == [("Launch", "Secret/Launch.md"), ("Dogs", "Open/Dogs.md")]
    assert reader.view.locate("Kitty") == "Open/Cats.md"
    assert set(reader.catalog.first_texts(ids).values()) == {
        "# Zebraheading\n\nThe zebraword is 42.",
        "# Cats\n\nCats like tomatoes and [[Launch]] and [[Dogs]].",
        "# Dogs\n\nDogs bark. #pet",
    }
    assert (
        reader.search(SearchRequest(text="tomatos")).remarks
        == team.engine.search(SearchRequest(text="tomatos")).remarks
    )
    assert reader.near_notes(DOGS, Filter(), limit=5) == team.engine.near_notes(DOGS, Filter(), limit=5)


def test_notes_are_read_as_they_were_published(team: Team) -> None:
    reader = team.reader()
    reader.refresh()
    view = reader.view

    assert view.read("open/cats.md").raw == (team.root / "Open/Cats.md").read_bytes()
    assert view.read_head("Open/Cats.md").outline.frontmatter is not None
    with view.open_bytes("Open/Dogs.md") as opened:
        assert opened.read(6) == b"# Dogs"
    with pytest.raises(RefusedError, match="none of the files") as raised:
        view.read_bytes("Open/photo.png")
    assert raised.value.code == "no_files"
    with pytest.raises(NotFound) as raised_folder:
        view.read("Open")
    assert raised_folder.value.code == "is_folder"
    with pytest.raises(NotFound):
        view.read("Open/Cat.md")
    with pytest.raises(RefusedError):
        view.new_path("New.md")
    with pytest.raises(BadInput, match="larger than"):
        view.read_bytes("Open/Cats.md", max_bytes=3)
    assert [stat.path for stat in view.list_files_at(view.root / "Open")[1]] == [
        "Open/Cats.md",
        "Open/Dogs.md",
        "Open/photo.png",
    ]
    assert not view.root.exists()


def test_two_spellings_of_a_published_path_are_ambiguous(team: Team) -> None:
    team.save({"open/cats.md": "other\n"})
    reader = team.reader()
    reader.refresh()

    assert reader.view.read("open/cats.md").raw == b"other\n"
    with pytest.raises(Ambiguous):
        reader.view.read("OPEN/CATS.md")


def test_a_file_that_was_saved_meanwhile_is_published_with_its_own_text(team: Team) -> None:
    team.engine.refresh()
    (team.root / "Open/Dogs.md").write_text("# Dogs\n\nDogs sleep.\n", "utf-8")
    (team.root / "Open/New.md").write_text("new\n", "utf-8")
    team.engine.refresh()
    (team.root / "Open/Dogs.md").write_text("# Dogs\n\nDogs dream.\n", "utf-8")
    team.publisher.publish(team.engine.store, team.engine.view, model="words")
    reader = team.reader()
    reader.refresh()
    before = reader.view.read("Open/Dogs.md").raw
    team.publish()
    reader.refresh()

    assert before == NOTES["Open/Dogs.md"].encode()
    assert reader.view.read("Open/New.md").raw == b"new\n"
    assert reader.view.read("Open/Dogs.md").raw == b"# Dogs\n\nDogs dream.\n"


@pytest.mark.parametrize(
    ("address", "shown", "password"),
    [
        ("postgresql://ada@db/x", "postgresql://ada@db/x", ""),
        ("postgresql://ada:p%40ss@db:5433/x?sslmode=require", "postgresql://ada@db:5433/x?sslmode=require", "p@ss"),
        ("postgres://ada:@/x?host=/run", "postgres://ada@/x?host=/run", ""),
        ("postgresql:///x", "postgresql:///x", ""),
    ],
)
def test_a_password_is_kept_apart_from_the_address(address: str, shown: str, password: str) -> None:
    assert split_password(address) == (shown, password)
    assert PostgresServer(address, "v").shown == shown


def test_a_password_where_it_would_be_shown_is_refused() -> None:
    with pytest.raises(SetupError, match="behind its '\\?'") as raised:
        split_password("postgresql://db/x?sslmode=require&password=s3cret-word")

    assert "s3cret-word" not in f"{raised.value}{raised.value.hint}"


def test_vaults_of_different_names_have_different_schemas() -> None:
    names = ("team", "Team", "team ", "te-am", "te_am", "日本", "x" * 90, "x" * 91, 'a"; DROP SCHEMA public; --')
    schemas = [schema_of(name) for name in names]

    assert len({*schemas}) == len(names)
    assert all(len(one) < 63 and one.isascii() and one.replace("_", "").isalnum() for one in schemas)


def test_without_the_extra_the_command_that_installs_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(connection, "import_module", missing)
    with pytest.raises(KnapError, match="extra 'postgres'") as raised:
        PostgresServer("postgresql://db/x", "v").connect()

    assert "knapper[" in raised.value.hint
    assert "postgres" in raised.value.hint


def test_an_address_that_is_none_is_told_without_it() -> None:
    with pytest.raises(SetupError, match="isn't an address") as raised:
        PostgresServer("postgresql://ada@db:port-s3cret/x?zzz=1", "v").connect()

    assert "s3cret" not in f"{raised.value}{raised.value.hint}"
