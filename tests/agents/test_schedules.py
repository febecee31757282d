"""Schedules: when they are due, who takes a due time, what holds them, and what becomes of a run."""

import asyncio
import contextlib
import datetime as dt
import io
import json
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.models import Model as AnyModel

from knapper import app
from knapper.agents import stages as stored
from knapper.agents.stages import Cadence, Schedule, ScheduledRun, ScheduleStore
from knapper.app import Hub, schedules
from knapper.app.chats import VaultChats
from knapper.app.open_clients import ModelOpeners, OpenClients
from knapper.app.schedules import ScheduleRunner
from knapper.changes.disk.undo import OfRun
from knapper.changes.proposals.store import ProposalFilter
from knapper.cli import main
from knapper.config import ClientSettings
from knapper.errors import BadInput, ConflictError, NotFound, StorageError
from knapper.server import lifecycle
from knapper.server.http.app import Mount
from knapper.server.http.background import JobService
from knapper.vault import access
from tests.agents import protocol, scripted
from tests.agents.protocol import Reply
from tests.agents.scripted import Call, Model
from tests.server import apps, chats
from tests.server.chats import Gate
from tests.tools import opened

NOTES = {
    "Beds.md": "# Beds\n\nSee [[Roses]].\n",
    "Roses.md": "# Roses\n\nRed.\n",
    "Inbox/Pruning.md": "# Pruning\n\nIn March.\n",
}
PROPOSE = Call("append_to_file", {"path": "Roses.md", "content": "- See also [[Pruning]]: when to cut"})
REPORT = "Proposed a link from Roses to Pruning."
MONDAY = dt.datetime(2026, 3, 16, 12, 0)  # noqa: DTZ001 - schedules have the clock on the wall
DAY = dt.timedelta(days=1)


@dataclass
class Clock:
    time: dt.datetime = MONDAY

    def __call__(self) -> dt.datetime:
        return self.time


@dataclass
class World:
    """A vault with a schedule, a clock that stands, and a model that says what a test tells it to."""

    vault: opened.Opener
    hub: Hub
    store: ScheduleStore
    clock: Clock
    model: Model
    runner: ScheduleRunner = field(init=False)
    open_model: Callable[[], AnyModel] | None = None
    """Opens another model in its place."""
    opened: list[OpenClients] = field(default_factory=list[OpenClients])

    def __post_init__(self) -> None:
        self.runner = self.another_runner()

    def another_runner(self, hub: Hub | None = None) -> ScheduleRunner:
        def answering(chats: VaultChats, _model: str):
            model = self.open_model() if self.open_model else self.model
            return scripted.chat(model, chats.hub.table.specs, meter=chats.meter)

        opened = OpenClients(hub or self.hub, ModelOpeners(chat=answering))
        self.opened.append(opened)
        return ScheduleRunner(clients=opened, now=self.clock)

    def look(self, *, after: dt.timedelta = dt.timedelta()) -> Schedule:
        self.clock.time += after
        asyncio.run(self.runner.run_due(self.hub.vaults[0]))
        return self.store.all()[0]

    def waiting(self) -> int:
        context = self.hub.context(client="cli")
        return context.writer.proposals.find(ProposalFilter(status="open")).total


def schedule(cadence: Cadence = "daily", **more: object) -> Schedule:
    made = Schedule(name="tidy", agent="weekly-review", cadence=cadence, at=dt.time(18), handled=MONDAY)
    return replace(made, **more)


@pytest.fixture
def vault(tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> opened.Opener:
    made = opened.vault(tmp_path, NOTES)
    monkeypatch.setenv("VAULT_PATH", str(made.root))
    monkeypatch.setenv("KNAP_EMBEDDINGS", "none")
    monkeypatch.chdir(own_home)
    return made


@pytest.fixture
def open_world(vault: opened.Opener) -> Generator[Callable[..., World]]:
    hubs: list[World] = []

    def opened_world(made: Schedule, *clients: ClientSettings) -> World:
        hub = Hub(vault.settings(*clients))
        store = schedules.open_schedules(hub)
        _ = store.add(made)
        hubs.append(World(vault, hub, store, Clock(), Model([[PROPOSE], [REPORT]])))
        return hubs[-1]

    yield opened_world
    for world in hubs:
        for opened_clients in world.opened:
            opened_clients.close()
        world.hub.close()


@pytest.mark.parametrize(
    ("cadence", "now", "due"),
    [
        ("daily", MONDAY + dt.timedelta(hours=5), None),
        ("daily", MONDAY + dt.timedelta(hours=6), MONDAY + dt.timedelta(hours=6)),
        ("daily", MONDAY + 9 * DAY, MONDAY + 8 * DAY + dt.timedelta(hours=6)),
        ("weekly", MONDAY + 6 * DAY, None),
        ("weekly", MONDAY + 6 * DAY + dt.timedelta(hours=6), MONDAY + 6 * DAY + dt.timedelta(hours=6)),
        ("weekly", MONDAY + 30 * DAY, MONDAY + 27 * DAY + dt.timedelta(hours=6)),
        ("changed", MONDAY + 30 * DAY, None),
    ],
)
def test_the_latest_time_that_was_missed_is_due_and_no_other(
    cadence: Cadence, now: dt.datetime, due: dt.datetime | None
) -> None:
    assert schedule(cadence).due_at(now) == due
    assert schedule(cadence, is_paused=True).due_at(now) is None
    assert due is None or schedule(cadence, handled=due).due_at(now) is None


def test_when_it_is_due_next_is_told() -> None:
    assert schedule().next_at(MONDAY) == MONDAY + dt.timedelta(hours=6)
    assert schedule("weekly").next_at(MONDAY) == MONDAY + 6 * DAY + dt.timedelta(hours=6)
    assert schedule("weekly", weekday=0).next_at(MONDAY) == MONDAY + dt.timedelta(hours=6)
    assert schedule("changed").next_at(MONDAY) is None


@pytest.mark.parametrize("text", ["24:00", "18", "18:60", "", "noon", "1:2:3"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        _ = stored.parse_time(text)


def test_days_are_told_by_their_beginning() -> None:
    assert [stored.parse_weekday(text) for text in ("mon", "Sunday", "th")] == [0, 6, 3]
    for text in ("", "t", "someday"):
        with pytest.raises(BadInput):
            _ = stored.parse_weekday(text)


@pytest.mark.parametrize("name", ["", "../x", "A", "a/b", "a" * 41, "a b", "-a", "a\x1b[0m"])
def test_a_name_that_could_be_a_path_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput):
        _ = ScheduleStore(folder=tmp_path).add(schedule(name=name))

    assert list(tmp_path.iterdir()) == []


def test_schedules_are_kept_as_they_were_made_and_a_damaged_file_is_told(tmp_path: Path) -> None:
    store = ScheduleStore(folder=tmp_path / "state")
    made = store.add(schedule("changed", folder="Inbox", last=ScheduledRun(at=MONDAY, state="held"), runs=("a", "b")))

    assert store.all() == [made]
    with pytest.raises(ConflictError):
        _ = store.add(schedule())
    with pytest.raises(NotFound):
        store.remove("other")
    store.remove("tidy")
    assert store.all() == []
    (tmp_path / "state" / stored.SCHEDULES_FILE).write_text("[{", "utf-8")
    with pytest.raises(StorageError):
        _ = store.all()


def test_of_many_that_take_a_due_time_one_gets_it(tmp_path: Path) -> None:
    stores = [ScheduleStore(folder=tmp_path) for _ in range(8)]
    _ = stores[0].add(schedule())
    now, taken, ready = MONDAY + DAY, list[bool](), threading.Barrier(8)

    def take(store: ScheduleStore) -> None:
        _ = ready.wait()
        taken.append(store.claim("tidy", lambda one: one.due_at(now), now))

    threads = [threading.Thread(target=take, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(taken) == [False] * 7 + [True]


def test_a_run_proposes_and_reports_for_a_client_of_its_own(open_world: Callable[..., World]) -> None:
    world = open_world(schedule())

    early = world.look(after=dt.timedelta(hours=5))
    done = world.look(after=dt.timedelta(hours=1))

    assert early.last is None
    assert done.last is not None
    assert (done.last.state, done.last.proposals, done.last.changes) == ("complete", 1, 0)
    assert (done.last.note, done.last.tokens > 0) == ("Reviews/2026-03-16 1800 tidy.md", True)
    assert world.waiting() == 2
    context = world.hub.context(client="cli")
    rows = context.writer.proposals.find(ProposalFilter(status="open", run=done.last.session_id)).proposals
    told = {(one.client, context.writer.proposals.show(one.id).behalf) for one in rows}
    assert told == {("agent", "schedule"), ("schedule", "")}
    assert world.vault.text("Roses.md") == NOTES["Roses.md"]
    assert not (world.vault.root / "Reviews").exists()


def test_missed_times_are_caught_up_once(open_world: Callable[..., World]) -> None:
    world = open_world(schedule(max_open=100))

    _ = world.look(after=9 * DAY)
    again = world.look()
    later = world.look(after=dt.timedelta(hours=5))

    assert len(again.runs) == len(later.runs) == 1
    assert len(world.look(after=DAY).runs) == 2


def test_two_servers_run_a_time_once(open_world: Callable[..., World]) -> None:
    world = open_world(schedule())
    world.clock.time += DAY
    with app.open_hub(world.vault.settings()) as hub:
        other, vault = world.another_runner(hub), hub.vaults[0]

        async def both() -> None:
            _ = await asyncio.gather(world.runner.run_due(vault), other.run_due(vault))

        asyncio.run(both())

    assert len(world.store.find("tidy").runs) == 1
    assert len(world.model.asked) == 2


@pytest.mark.timeout(60)
def test_it_is_held_while_nobody_reviews_and_goes_on_afterwards(open_world: Callable[..., World]) -> None:
    world = open_world(schedule(max_open=2))
    _ = world.look(after=DAY)

    held = world.look(after=DAY)
    still = world.look(after=DAY)
    proposals = world.hub.context(client="cli").writer.proposals
    for one in proposals.find(ProposalFilter(status="open")).proposals:
        _ = proposals.reject(one.id, "no")
    free = world.look(after=DAY)

    assert held.last is not None
    assert (held.last.state, held.last.reason) == ("held", "2 of its proposals wait for review: `knap edits review`")
    assert still.runs == held.runs
    assert free.last is not None
    assert free.last.state == "complete"


def test_where_the_owner_says_so_it_applies_and_one_run_is_undone_at_once(open_world: Callable[..., World]) -> None:
    allowed = [
        ClientSettings(grants=replace(access.default_grants(name), small="apply")) for name in ("agent", "schedule")
    ]
    world = open_world(schedule(may_apply=True), *allowed)

    done = world.look(after=DAY)

    assert done.last is not None
    assert (done.last.changes, done.last.proposals) == (1, 0)
    assert "[[Pruning]]" in world.vault.text("Roses.md")
    assert (world.vault.root / done.last.note).is_file()
    _ = world.hub.context(client="cli").writer.undo(OfRun(run=done.last.session_id))
    assert world.vault.text("Roses.md") == NOTES["Roses.md"]
    assert not (world.vault.root / done.last.note).exists()


def test_apply_gives_it_no_more_than_the_rules_do(open_world: Callable[..., World]) -> None:
    world = open_world(
        schedule(may_apply=True), ClientSettings(grants=replace(access.default_grants("agent"), small="apply"))
    )

    done = world.look(after=DAY)

    assert done.last is not None
    assert (done.last.changes, done.last.proposals) == (0, 1)


def test_what_is_hidden_from_its_client_is_no_reason_to_work(open_world: Callable[..., World]) -> None:
    world = open_world(schedule(), ClientSettings(grants=access.default_grants("schedule"), hidden=("Inbox/",)))

    done = world.look(after=DAY)

    assert done.last is not None
    assert (done.last.state, world.model.asked, world.waiting()) == ("nothing", [], 0)


def test_a_run_keeps_its_budget(open_world: Callable[..., World]) -> None:
    world = open_world(schedule(max_tokens=60))

    done = world.look(after=DAY)

    assert done.last is not None
    assert (done.last.state, len(world.model.asked)) == ("limit", 1)
    assert "limit" in done.last.reason


def test_a_run_keeps_its_time_and_what_it_had_by_then(
    open_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("knapper.agents.chat.turn.MINUTE_S", 0.5)
    world, gate = open_world(schedule(max_minutes=1)), Gate()
    world.open_model = gate.open

    done = world.look(after=DAY)

    assert done.last is not None
    assert (done.last.state, done.last.reason) == ("limit", "the time for it was up")
    with schedules.open_sessions(world.hub, done.last.session_id) as opened_sessions:
        (kept,) = opened_sessions.values()
        (turn,) = kept.turns(done.last.session_id)
    assert turn.outcome["notes"] == ["the time for it was up"]


def test_a_folder_that_changes_and_rests_is_due_once(open_world: Callable[..., World]) -> None:
    world = open_world(schedule("changed", folder="Inbox"))
    seen = schedules.take_fingerprint(world.hub.context(client="schedule"), world.store.find("tidy"))
    _ = world.store.change("tidy", lambda one: replace(one, fingerprint=seen))
    minute = dt.timedelta(minutes=1)

    resting = world.look(after=DAY)
    (world.vault.root / "Inbox" / "New.md").write_text("# New\n", "utf-8")
    noticed = world.look(after=minute)
    (world.vault.root / "Inbox" / "New.md").write_text("# New, longer\n", "utf-8")
    written = world.look(after=4 * minute)
    unrest = world.look(after=4 * minute)
    done = world.look(after=minute)
    (world.vault.root / "Elsewhere.md").write_text("# Elsewhere\n", "utf-8")
    elsewhere = [world.look(after=DAY), world.look(after=DAY)]

    assert [one.last for one in (resting, noticed, written, unrest)] == [None] * 4
    assert done.last is not None
    assert done.last.state == "complete"
    assert [len(one.runs) for one in elsewhere] == [1, 1]


def test_a_clock_that_was_ahead_does_not_silence_it(open_world: Callable[..., World]) -> None:
    world = open_world(schedule(handled=MONDAY + 400 * DAY))

    _ = world.look()

    assert len(world.look(after=dt.timedelta(hours=6)).runs) == 1


def test_a_server_that_stops_keeps_what_a_run_has_and_runs_it_no_second_time(open_world: Callable[..., World]) -> None:
    world, gate = open_world(schedule()), Gate()
    world.open_model = gate.open
    world.clock.time += DAY

    async def stop() -> None:
        async with lifecycle.run_schedules(lambda: world.runner, world.hub.vaults, poll_s=0.01):
            _ = await asyncio.to_thread(gate.until_waiting)
            at_work = world.store.find("tidy")
            assert at_work.last is not None
            told = (at_work.last.state, at_work.runs)
            assert told == ("running", (at_work.last.session_id,))

    asyncio.run(stop())

    last = world.store.find("tidy").last
    assert last is not None
    assert (last.state, bool(last.session_id), last.reason) == ("interrupted", True, "the server stopped")
    assert world.store.find("tidy").due_at(world.clock.time) is None


def test_a_run_whose_process_was_killed_is_told_as_interrupted(tmp_path: Path) -> None:
    store, now = ScheduleStore(folder=tmp_path), MONDAY + DAY
    _ = store.add(schedule())

    with store.working("tidy"):
        assert store.claim("tidy", lambda one: one.due_at(now), now)
        at_work = store.find("tidy").last
        with pytest.raises(ConflictError):
            store.remove("tidy")
    killed = store.find("tidy").last

    assert at_work is not None
    assert killed is not None
    assert (at_work.state, killed.state) == ("running", "interrupted")


def test_a_run_is_cancelled_from_another_process_and_keeps_what_it_has(open_world: Callable[..., World]) -> None:
    world, gate = open_world(schedule()), Gate()
    world.open_model = gate.open
    world.clock.time += DAY

    async def cancel() -> None:
        going = asyncio.create_task(world.runner.run_due(world.hub.vaults[0]))
        _ = await asyncio.to_thread(gate.until_waiting)
        _ = ScheduleStore(folder=world.store.folder).cancel("tidy")
        await going

    with pytest.raises(ConflictError):
        _ = world.store.cancel("tidy")
    asyncio.run(cancel())

    last = world.store.find("tidy").last
    assert last is not None
    assert (last.state, bool(last.session_id), last.is_cancelled) == ("cancelled", True, False)
    with schedules.open_sessions(world.hub, last.session_id) as opened:
        ((client, kept),) = opened.items()
        (turn,) = kept.turns(last.session_id)
    assert (client, turn.outcome["state"], str(turn.outcome["answer"]).strip()) == ("schedule", "cancelled", "One.")


def test_a_person_sees_follows_and_stops_a_run_among_the_jobs_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedules, "CANCEL_POLL_S", 0.05)
    gate, hiding = Gate(), ClientSettings(grants=access.default_grants("page"), hidden=("Private/",))
    with apps.world(tmp_path) as world:
        store = schedules.open_schedules(world.hub)
        _ = store.add(schedule())
        service = JobService(world.hub, ModelOpeners(chat=chats.opener(gate.open)))
        runner = lifecycle.open_schedule_runner(service)
        runner.now = Clock(MONDAY + DAY)
        going = Mount(lifespan=lambda: lifecycle.run_schedules(lambda: runner, world.hub.vaults, poll_s=0.01))
        with world.client(world.token("page"), lifecycle.mount_jobs(service, world.hub, world.stop), going) as page:
            gate.until_waiting()
            (row,) = page.get("/sessions").json()["results"]
            at_work = page.get(f"/sessions/{row['id']}").json()["session"]
            stopped = page.post(f"/chat/{row['running']}/cancel").json()
            heard = chats.again(page, f"/chat/{row['running']}")
            api = {"authorization": f"Bearer {world.token('api')}"}
            hidden = [page.get(path, headers=api) for path in ("/sessions", f"/sessions/{row['id']}")]
            while (ended := store.find("tidy").last) is None or ended.state == "running":
                time.sleep(0.01)  # a server that stops before would interrupt it

        async def seen() -> list[str]:
            with Hub(replace(world.settings, clients=(hiding,))) as hub:
                service = JobService(hub)
                try:
                    return await service.seen_clients("page", "")
                finally:
                    await service.shut()

        fewer = asyncio.run(seen())

    assert (row["client"], row["title"], at_work["running"]) == ("schedule", "Weekly review", row["running"])
    assert (stopped["cancelled"], heard[-1].name, heard[-1].data["state"]) == (True, "done", "cancelled")
    assert (hidden[0].json()["total"], hidden[1].status_code, fewer) == (0, 404, ["page"])
    assert ended is not None
    assert (ended.state, ended.session_id) == ("cancelled", row["id"])


def test_a_slow_run_holds_up_no_other_vault(tmp_path: Path, own_home: Path) -> None:
    settings = apps.settings(tmp_path, NOTES)
    other = tmp_path / "other"
    other.mkdir()
    (other / "Lone.md").write_text("# Lone\n", "utf-8")
    gate, quick = Gate(), Model([[REPORT]])

    def answering(opened: VaultChats, _model: str):
        model = quick if opened.vault == "other" else gate.open()
        return scripted.chat(model, opened.hub.table.specs, meter=opened.meter)

    async def run(hub: Hub) -> None:
        with contextlib.closing(OpenClients(hub, ModelOpeners(chat=answering))) as opened:
            runner = ScheduleRunner(clients=opened, now=Clock(MONDAY + DAY))
            async with lifecycle.run_schedules(lambda: runner, hub.vaults, poll_s=0.01):
                _ = await asyncio.to_thread(gate.until_waiting)
                store = schedules.open_schedules(hub, "other")
                last = store.find("tidy").last
                while last is None or last.state == "running":
                    await asyncio.sleep(0.02)
                    last = store.find("tidy").last
                slow = schedules.open_schedules(hub, settings.vault.name).find("tidy").last
                assert slow is not None
                assert (last.state, slow.state) == ("complete", "running")

    with Hub(replace(settings, vaults=(settings.vault, replace(settings.vault, name="other", path=other)))) as hub:
        for vault in hub.vaults:
            _ = schedules.open_schedules(hub, vault).add(schedule())
        asyncio.run(run(hub))
    assert own_home.is_dir()


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    code = main.run(["schedule", *words, "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.timeout(60)
def test_the_commands_add_list_pause_resume_and_remove(
    vault: opened.Opener, capsys: pytest.CaptureFixture[str]
) -> None:
    _, added = told(capsys, "add", "weekly-review", "--weekly", "sun", "--at", "7:30", "--tokens", "5000")
    _, listed = told(capsys)
    paused = told(capsys, "pause", "weekly-review")[1]["schedule"]
    resumed = told(capsys, "resume", "weekly-review")[1]["schedule"]
    main.run(["status"])
    status = capsys.readouterr().out
    main.run(["schedule"])
    line = capsys.readouterr().out
    removed, _ = told(capsys, "remove", "weekly-review")

    row = added["schedule"]
    assert (row["when"], row["tokens"], row["client"]) == ("weekly on sunday at 07:30", 5000, "schedule")
    assert listed["results"] == [row]
    assert (paused["paused"], paused["next"], resumed["paused"]) == (True, None, False)
    assert "1 schedule; `knap schedule` lists them" in status
    assert line.startswith("weekly-review: weekly-review, weekly on sunday at 07:30; next ")
    assert (removed, told(capsys)[1]["total"]) == (0, 0)
    assert vault.root.is_dir()


@pytest.mark.timeout(60)
def test_a_schedule_that_nobody_would_work_on_is_added_with_a_word_about_it(
    vault: opened.Opener, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["schedule", "add", "weekly-review", "--daily"]) == 0

    shown = capsys.readouterr()
    assert shown.out.startswith("added: weekly-review")
    assert "no model is set" in shown.err
    assert "no server runs, which does the work: `knap serve`" in shown.err
    assert vault.root.is_dir()


@pytest.mark.timeout(60)
def test_a_schedule_is_changed_where_that_is_asked_and_what_was_missed_is_not_caught_up(
    vault: opened.Opener, capsys: pytest.CaptureFixture[str]
) -> None:
    _ = told(capsys, "add", "weekly-review", "--weekly", "sun", "--tokens", "5000")
    _, edited = told(capsys, "edit", "weekly-review", "--changed", "Inbox", "--max-open", "3", "--apply")
    _, back = told(capsys, "edit", "weekly-review", "--daily", "--at", "0:00", "--results", "", "--propose")
    refused = [
        told(capsys, "edit", "weekly-review")[1]["code"],
        told(capsys, "edit", "weekly-review", "--daily", "--weekly", "mon")[1]["code"],
        told(capsys, "edit", "weekly-review", "--client", "cli")[1]["code"],
        told(capsys, "edit", "nobody", "--daily")[1]["code"],
    ]

    one, other = edited["schedule"], back["schedule"]
    assert (one["when"], one["tokens"], one["max_open"], one["apply"]) == ("when Inbox has changed", 5000, 3, True)
    assert (other["when"], other["tokens"], other["results"], other["apply"]) == ("daily at 00:00", 5000, "", False)
    assert dt.datetime.fromisoformat(other["next"]) > dt.datetime.now()  # noqa: DTZ005 - the clock on the wall
    assert refused == ["usage", "bad_input", "bad_input", "no_schedule"]
    assert vault.root.is_dir()


def test_what_changes_while_it_is_paused_is_no_reason_to_work(open_world: Callable[..., World]) -> None:
    world = open_world(schedule("changed", folder="Inbox", is_paused=True))
    (world.vault.root / "Inbox" / "New.md").write_text("# New\n", "utf-8")

    _ = schedules.edit(
        world.hub, world.store, world.hub.vaults[0], "cli", "tidy", lambda one: replace(one, is_paused=False)
    )

    assert [world.look(after=DAY).runs for _ in range(2)] == [(), ()]


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--daily", "--weekly", "sunday"),
        ("--daily", "--client", "cli"),
        ("--daily", "--client", "page"),
        ("--daily", "--at", "25:00"),
        ("--daily", "--name", "../../x"),
        ("--daily", "--results", "../outside"),
        ("--changed", "Nowhere"),
        ("--changed", "Inbox", "--results", "Inbox"),
        ("--changed", "Inbox", "--results", "inbox"),
    ],
)
def test_what_cannot_be_scheduled_is_refused_and_not_kept(
    vault: opened.Opener, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    code, answer = told(capsys, "add", "weekly-review", *words)

    assert (code != 0, answer["success"]) == (True, False)
    assert told(capsys)[1]["total"] == 0
    assert vault.root.is_dir()


def test_reports_below_the_folder_that_is_watched_leave_its_other_changes_seen(vault: opened.Opener) -> None:
    made = schedule("changed", folder="Inbox", results="Inbox/Reports")
    schedules.check_can_fire(made)
    reports = vault.root / "Inbox" / "Reports"
    reports.mkdir()
    with app.open_hub(vault.settings()) as hub:
        before = schedules.take_fingerprint(hub.context(client="schedule"), made)
        (reports / "One.md").write_text("# One\n", "utf-8")
        reported = schedules.take_fingerprint(hub.context(client="schedule"), made)
        (vault.root / "Inbox" / "New.md").write_text("# New\n", "utf-8")
        changed = schedules.take_fingerprint(hub.context(client="schedule"), made)

    assert (reported == before, changed == before) == (True, False)


@pytest.mark.timeout(60)
def test_a_schedule_is_run_at_once_where_the_person_says_so(
    vault: opened.Opener, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _ = told(capsys, "add", "weekly-review", "--daily")
    with protocol.serving(Reply(parts=[PROPOSE]), Reply(parts=[REPORT])) as server:
        monkeypatch.setenv("KNAP_MODEL", f"tiny@{server.base_url}")
        code, answer = told(capsys, "run", "weekly-review")
    monkeypatch.delenv("KNAP_MODEL")
    failed, without = told(capsys, "run", "weekly-review")
    main.run(["status"])
    status = capsys.readouterr().out
    main.run(["sessions", "--json"])
    (session,) = json.loads(capsys.readouterr().out)["results"]
    main.run(["sessions", "show", session["id"]])
    shown = capsys.readouterr().out
    with protocol.serving(Reply(parts=["Since they are pruned."])) as server:
        monkeypatch.setenv("KNAP_MODEL", f"tiny@{server.base_url}")
        monkeypatch.setattr("sys.stdin", io.StringIO("Why?\n"))
        main.run(["chat", "--session", session["id"]])
    went_on = capsys.readouterr().out

    assert (code, answer["schedule"]["last"]["proposals"]) == (0, 1)
    assert (session["id"], session["client"]) == (answer["schedule"]["last"]["session_id"], "schedule")
    assert (REPORT in shown, "Since they are pruned." in went_on) == (True, True)
    assert (failed, without["schedule"]["last"]["state"]) == (8, "failed")
    assert "weekly-review: failed last time: no model is set (" in status
    assert vault.text("Roses.md") == NOTES["Roses.md"]
