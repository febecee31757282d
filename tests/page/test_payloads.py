"""A hundred texts that would do harm, put wherever a text comes from: on every view of the page they stay text."""

import json
import re
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit

import pytest
from playwright.sync_api import Page, Route, expect

from knapper.app import Hub
from knapper.config import ClientSettings, Settings, Vault
from knapper.server import credentials
from knapper.server.http import clients, feed, indexing
from knapper.server.http.app import Mount
from knapper.server.http.clients import PairingService
from knapper.server.workers import StopSignal, WorkerThreads
from knapper.vault import access
from tests.agents.run_world import Brain, Part
from tests.agents.scripted import Call, Model
from tests.index import worlds
from tests.page import reviews, run_sites, sites
from tests.page.payloads import DIAGRAMS, HTML, LINKS, MARKDOWN, MATHS, PAYLOADS, PICTURE, RUN, Trap
from tests.page.sites import Site, answered, say

pytestmark = pytest.mark.timeout(300)
END: Final = "The end of it."
BREATH_MS: Final = 150
LAZY: Final = ".k-code, .k-diagram, .k-embedded, .k-embed"


@contextmanager
def serving(base: Path, notes: Mapping[str, str], model: Model | None = None) -> Generator[Site]:
    """Serve a vault with all that the page has views for."""
    threads = WorkerThreads(2)

    def more(hub: Hub, stop: StopSignal) -> Sequence[Mount]:
        return [feed.mount_feed(hub, threads, stop)]

    with sites.serving(base, (model or Model([["Hello."]])).open, notes=notes, more=more) as site:
        yield site
    threads.close()


def enter(site: Site, tab: Page) -> Trap:
    """Sign in, and listen from then on."""
    trap = Trap(tab=tab, address=site.address)
    site.enter(tab)
    return trap


def visit(site: Site, tab: Page, trap: Trap, addresses: Iterable[str]) -> None:
    """Go to addresses one after the other, as a person does who looks at each, and see that nothing comes of it."""
    for address in addresses:
        reply = tab.goto(f"{site.address}{address}")
        if reply is not None and reply.status == 404:  # such as one with an empty part
            assert reply.headers["content-type"].startswith("application/json"), address
            continue
        expect(tab.get_by_role("navigation", name="Views")).to_be_visible()
        expect(tab.locator(".k-skeleton").locator("visible=true")).to_have_count(0)
        tab.wait_for_timeout(BREATH_MS)
        trap.check()


def file_names() -> list[str]:
    """Give the payloads that a file's name can hold."""
    names = {re.sub(r"[/\\\n\r\t\0]", "-", text)[:60].strip(" .") for text in (*HTML, *LINKS, *MARKDOWN)}
    return sorted(f"{name}.md" for name in names if name)


def test_there_are_a_hundred_of_them() -> None:
    assert len(set(PAYLOADS)) >= 100


FORMS: Final = {
    "paragraphs": "{}",
    "headings": "## {}",
    "lists": "- {}\n  1. {}",
    "quotes": "> {}",
    "callouts": "> [!warning] {}\n> {}",
    "cells": "| {} | b |\n|---|---|\n| {} | `{}` |",
    "links": "[{}](Plain.md) ![{}](x.png) [[Plain|{}]] ![[{}]] [[{}]]",
    "targets": '[x](<{}>) [y]({}) ![z]({}) [w](Plain.md "{}")',
    "code": "```{}\n{}\n```\n\n`{}`",
    "footnotes": "x[^1]\n\n[^1]: {}",
    "maths": "$\\text{{{}}}$ and $${}$$",
    "diagrams": '```mermaid\ngraph TD\nA["{}"] -->|{}| B({})\n```',
}


@pytest.mark.parametrize("form", FORMS)
def test_the_text_of_a_note(tmp_path: Path, tab: Page, form: str) -> None:
    pattern = FORMS[form]
    chosen = PAYLOADS if form not in {"diagrams", "maths"} else (*HTML[:24], *LINKS[:6])

    def filled(text: str) -> str:
        inside = text if pattern == "{}" else " ".join(text.split())
        return pattern.replace("{{{}}}", f"{{{inside}}}").replace("{}", inside)

    blocks = "\n\n".join(map(filled, chosen))
    notes = {"Evil.md": f"{blocks}\n\n{END}\n", "Plain.md": f"# Plain\n\n![[Evil]]\n\n{END}\n"}
    with serving(tmp_path, notes) as site:
        trap = enter(site, tab)
        for name in ("Evil", "Plain"):
            visit(site, tab, trap, [f"/app/notes/{name}.md"])
            expect(tab.locator("main").get_by_text(END).last).to_be_attached()
            for at in range(60):  # what is drawn when it comes into view
                tab.evaluate(f"at => document.querySelectorAll({LAZY!r})[at]?.scrollIntoView()", at)
            tab.wait_for_timeout(1_000 if form in {"paragraphs", "diagrams", "maths"} else BREATH_MS)
            trap.check()


def test_diagrams_and_maths(tmp_path: Path, tab: Page) -> None:
    text = "\n\n".join((*DIAGRAMS, *MATHS, "```mermaid\ngraph TD\nGood-->Drawn\n```", "$x^2$", END))
    with serving(tmp_path, {"Drawn.md": text}) as site:
        trap = enter(site, tab)
        visit(site, tab, trap, ["/app/notes/Drawn.md"])
        expect(tab.locator(".k-diagram img").last).to_be_visible()
        expect(tab.locator(".katex").last).to_be_visible()
        for picture in tab.locator(".k-diagram").all():
            picture.click()
        tab.wait_for_timeout(1_000)

        trap.check()


def test_names_of_notes_and_folders(tmp_path: Path, tab: Page) -> None:
    names = file_names()
    notes = {name: f"# {name}\n\nSee [[Plain]] and [[{names[0]}]].\n" for name in names}
    notes |= {f"{name.removesuffix('.md')}/Inside.md": "# Inside\n" for name in names[:20]}
    notes["Plain.md"] = "# Plain\n\n" + "\n".join(f"[[{name}]] ![[{name}]]" for name in names)
    with serving(tmp_path, notes) as site:
        trap = enter(site, tab)
        visit(site, tab, trap, ["/app/notes", "/app/notes/Plain.md", "/app/search?q=plain", "/app/graph/Plain.md"])
        visit(site, tab, trap, (f"/app/notes/{quote(name)}" for name in names[::6]))
        visit(site, tab, trap, ["/app/search?folder=" + quote(names[0].removesuffix(".md"), safe="")])
        for typed in ("<", "img", "javascript"):
            tab.keyboard.press("Control+k")
            tab.keyboard.type(typed)
            expect(tab.get_by_role("option").first).to_be_visible()
            trap.check()
            tab.keyboard.press("Escape")


def test_properties_and_tags(tmp_path: Path, tab: Page) -> None:
    rows = [f"{json.dumps(text)}: {json.dumps(text)}" for text in HTML[:40]]
    rows += [f"{name}: {json.dumps(list(HTML))}" for name in ("aliases", "tags", "cssclasses", "links")]
    rows += [f"{name}: {json.dumps(text)}" for name, text in zip(("title", "status", "url"), LINKS, strict=False)]
    rows += [f"list{at}: {json.dumps(f'[[{text}]]')}" for at, text in enumerate(LINKS)]
    tags = " ".join("#" + re.sub(r"[^\w<>=/-]", "", text) for text in HTML)
    notes = {"Evil.md": "---\n" + "\n".join(rows) + f"\n---\n# Evil\n\n{tags}\n\n{END}\n", "Other.md": "# Other\n"}
    with serving(tmp_path, notes) as site:
        trap = enter(site, tab)
        visit(site, tab, trap, ["/app/notes/Evil.md", "/app/search?q=evil", "/app/notes", "/app/graph/Evil.md"])
        tab.goto(f"{site.address}/app/search")
        for name in ("Tag", "Property", "Folder"):
            tab.get_by_role("group", name="Filters").get_by_role("button", name=name).click()
            tab.wait_for_timeout(2 * BREATH_MS)
            trap.check()
            tab.keyboard.press("Escape")
        for text in HTML[::9]:
            for name in ("tag", "property"):
                visit(site, tab, trap, [f"/app/search?q=evil&{name}={quote(text, safe='')}"])


def test_what_a_model_says_and_does(tmp_path: Path, tab: Page) -> None:
    answer = "\n\n".join((*PAYLOADS, END))
    steps = [Call("search_vault", {"query": text}) for text in (PICTURE, *LINKS[:3])]
    create = Call("create_file", {"path": "New ' onload='owned(1)'.md", "content": answer})
    cites = " ".join(f"[[Evil#{text}]] (line 3) [[{text}]] [[Evil|{text}]]" for text in (*HTML[:12], *LINKS[:6]))
    model = Model([[answer, *steps], [create], [f"{cites}\n\n{answer}"], ["Good."]])
    with serving(tmp_path, {"Evil.md": f"# {PICTURE}\n\n{answer}\n"}, model) as site:
        trap = enter(site, tab)
        visit(site, tab, trap, ["/app/chat/new"])
        say(tab, f"{PICTURE} {answer[:3_000]}")
        answered(tab)
        for summary in tab.locator(".k-exchange summary").all():
            summary.click()
        trap.check()
        tab.locator(".k-changes").get_by_role("button", name="Preview").click()
        tab.wait_for_timeout(2 * BREATH_MS)
        trap.check()
        tab.locator(".k-answer .k-cite").first.click()
        expect(tab.locator(".k-pane")).to_be_visible()
        tab.wait_for_timeout(2 * BREATH_MS)
        trap.check()
        tab.keyboard.press("Escape")
        tab.get_by_role("button", name="Conversation actions").click()
        trap.check()
        tab.keyboard.press("Escape")
        visit(site, tab, trap, [tab.url.removeprefix(site.address), "/app/review", "/app/journal", "/app/search"])


def test_what_is_searched_and_found(tmp_path: Path, tab: Page) -> None:
    notes = {f"Note {at}.md": f"# Found {text}\n\nfound {text} found\n" for at, text in enumerate(PAYLOADS)}
    with serving(tmp_path, notes) as site:
        trap = enter(site, tab)
        visit(site, tab, trap, ["/app/search?q=found", "/app/search?q=img", "/app/search?q=script", "/app/search?q=x"])
        expect(tab.locator("main")).to_contain_text("javascript")
        visit(site, tab, trap, (f"/app/search?q={quote(text, safe='')}" for text in PAYLOADS[::9]))


def test_what_a_program_proposes(tmp_path: Path, tab: Page) -> None:
    text = "\n\n".join((*PAYLOADS, END, ""))
    other = "\n\n".join(reversed((*PAYLOADS, END, "")))
    evil = f"{PICTURE}.md"
    with serving(tmp_path, {"Plain.md": "# Plain\n", evil: text}) as site:
        trap = enter(site, tab)
        names = [
            reviews.propose(site, evil, client="agent", reason=PICTURE, run=PICTURE, **{text: other}),
            reviews.propose(site, "Plain.md", client="agent", reason=text[:2_000], **{"# Plain": text}),
        ]
        for name in names:
            visit(site, tab, trap, [f"/app/review/{name}"])
            expect(tab.locator(".k-review-file").first).to_be_visible()
            trap.check()
        reviews.accept(site, evil, run=PICTURE, reason=PICTURE, **{text: text + other})
        visit(site, tab, trap, ["/app/review", "/app/journal"])
        for row in tab.locator("main details > summary").all()[:10]:
            row.click()

        trap.check()


def test_what_runs_are_asked_and_answer(tmp_path: Path, tab: Page) -> None:
    task, answer = f"alpha {PICTURE}", "\n\n".join((*PAYLOADS, END))
    brain = Brain(
        plans={task: [Part(f"beta {HTML[1]}"), Part(f"gamma {HTML[6]}", needs=[f"beta {HTML[1]}"])]},
        answers={f"beta {HTML[1]}": answer, f"gamma {HTML[6]}": answer, f"join {task}": answer, task: answer},
    )
    with run_sites.serving(tmp_path, brain) as site:
        trap = enter(site, tab)
        run_sites.begin(site, tab, task)
        expect(run_sites.state(tab)).to_contain_text(re.compile("Done|Finished|Complete", re.IGNORECASE))
        trap.check()
        for row in tab.get_by_role("treeitem").all():
            row.click()
            tab.wait_for_timeout(2 * BREATH_MS)
            trap.check()
        visit(site, tab, trap, [tab.url.removeprefix(site.address), "/app/runs"])


def test_addresses_of_the_page(tmp_path: Path, tab: Page) -> None:
    views = ("notes/{}", "chat/{}", "runs/{}", "review/{}", "graph/{}", "settings/{}", "{}")
    more = ("notes/Plain.md#{}", "notes/Plain.md?lines={}", "chat/new?q={}", "chat/new?note={}", "runs/x?part={}")
    found = ("search?tag={}", "search?folder={}", "search?property={}", "search?q=x&from={}", "notes/Plain.md?vault={}")
    with serving(tmp_path, {"Plain.md": "# Plain\n"}) as site:
        trap = enter(site, tab)
        for at, pattern in enumerate((*views, *more, *found)):
            chosen = (*HTML, *LINKS)[at::31]
            visit(site, tab, trap, (f"/app/{pattern.format(quote(text, safe=''))}" for text in chosen))


def test_names_of_presets_and_models(tmp_path: Path, tab: Page) -> None:
    names = [text for text in HTML if len(text) < 60][:20]
    with serving(tmp_path, {"Plain.md": "# Plain\n"}) as site:
        trap = enter(site, tab)
        visit(site, tab, trap, ["/app/chat/new"])
        tab.get_by_role("button", name="Notes and rules").click()
        for name in names[:4]:
            tab.get_by_role("button", name="Save as").click()
            tab.get_by_label("Name", exact=True).fill(name)
            tab.keyboard.press("Enter")
            expect(tab.get_by_role("dialog")).to_have_count(0)
            trap.check()
        sections = ("appearance", "models", "agents", "web", "limits", "clients", "index")
        visit(site, tab, trap, (f"/app/settings/{name}" for name in sections))
        visit(site, tab, trap, ["/app/chat/new"])
        tab.get_by_role("button", name="Notes and rules").click()
        expect(tab.locator(".k-presets option").filter(has_text="<img")).not_to_have_count(0)

        trap.check()


NAMES: Final = (*HTML[:10], "\u202e)1(denwo\u202c", f"javascript:{RUN}", "__proto__", "main")


def badly_named(found: Settings) -> Settings:
    """Name vaults, clients and models in harmful ways."""
    base = found.vault.path.parent
    folders = [worlds.fill(base / f"other{at}", {"Other.md": "# Other\n"}).resolve() for at in range(len(NAMES))]
    vaults = [Vault(name=name, path=folder) for name, folder in zip(NAMES, folders, strict=True)]
    grants = [replace(access.default_grants(name), write=(name,), small="apply") for name in NAMES]
    programs = [ClientSettings(grants=own, read=("*", own.client), vaults=(own.client,)) for own in grants]
    models = [f"ollama:{name}" for name in NAMES]
    model = replace(found.model, name=models[0], fallbacks=tuple(models[1:]))
    return replace(found, vaults=(found.vault, *vaults), clients=tuple(programs), model=model)


def with_clients(hub: Hub, stop: StopSignal) -> Sequence[Mount]:
    """Serve the clients and the index, too."""
    service, threads = PairingService(hub, credentials.open_codes(hub.settings.state_dir), "instance"), WorkerThreads(2)
    return [clients.mount_clients(service, hub, threads), indexing.mount_index(hub, threads, stop)]


def rename_providers(route: Route) -> None:
    """Have the server name providers as no server does."""
    reply = route.fetch()
    answer = reply.json()
    rows = [{**row, "provider": name} for row, name in zip(answer["results"], reversed(NAMES), strict=False)]
    route.fulfill(response=reply, json={**answer, "results": rows})


def test_names_of_models_providers_clients_and_vaults(tmp_path: Path, tab: Page) -> None:
    notes, model = {"A.md": "# A\n"}, Model([["Hello."]])
    with sites.serving(tmp_path, model.open, notes=notes, change=badly_named, more=with_clients) as site:
        trap = enter(site, tab)
        tab.route(lambda url: urlsplit(url).path == "/models", rename_providers)
        sections = ("models", "limits", "index", "about", "clients")
        visit(site, tab, trap, (f"/app/settings/{name}" for name in sections))
        expect(tab.get_by_role("list", name="Programs and permissions").get_by_role("listitem")).to_have_count(20)
        tab.get_by_role("button", name=f"Edit permissions of {PICTURE}", exact=True).click()
        rights = tab.get_by_role("group", name=f"Permissions of {PICTURE}", exact=True)
        rights.get_by_role("textbox", name="Can't read").fill(PICTURE)
        tab.keyboard.press("Tab")
        expect(rights.get_by_role("alert")).to_contain_text(f"client '{PICTURE}'")  # the file doesn't have it
        trap.check()
        tab.get_by_role("button", name="Appearance and account").click()
        expect(tab.get_by_role("menuitemradio").filter(has_text="<img")).to_have_count(1)
        trap.check()
        visit(site, tab, trap, ["/app/chat/new"])
        tab.get_by_role("button", name=re.compile("^Model: ")).click()
        expect(tab.get_by_role("menu")).to_contain_text("<img src=x")
        trap.check()
        tab.keyboard.press("Escape")
        say(tab, "Hello")
        answered(tab)
        visit(site, tab, trap, (f"/app/notes/Other.md?vault={quote(name, safe='')}" for name in NAMES[::3]))

        trap.check()
