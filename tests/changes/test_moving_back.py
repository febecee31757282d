"""The way back: what an earlier move made links say is taken back, where the journal remembers it."""

from pathlib import Path

from tests.changes import relinking

SEVERAL = {"S.md": "[[N]] [[n|x]]\n", "a/N.md": "", "bb/N.md": "", "bb/T.md": "[[N]] [[S]]\n"}


def test_a_name_that_had_to_get_a_path_is_a_name_again(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, SEVERAL)

    world.remember(("a/N.md", "long/er/N.md"))
    away = world.text("S.md")
    world.remember(("long/er/N.md", "a/N.md"))

    assert away == "[[long/er/N]] [[long/er/n|x]]\n"
    assert world.text("S.md") == SEVERAL["S.md"]


def test_a_path_that_is_still_right_is_taken_back_too(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, SEVERAL)

    world.remember(("bb/T.md", "T.md"))
    away = world.text("T.md")
    world.remember(("T.md", "bb/T.md"))

    assert away == "[[bb/N]] [[S]]\n"
    assert world.text("bb/T.md") == SEVERAL["bb/T.md"]


def test_without_the_journal_a_path_stays_a_path(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, SEVERAL)

    world.move(("a/N.md", "long/er/N.md"))
    world.move(("long/er/N.md", "a/N.md"))

    assert world.text("S.md") == "[[a/N]] [[a/n|x]]\n"


def test_text_that_was_written_meanwhile_stays_and_links_still_go_back(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, SEVERAL)
    world.remember(("a/N.md", "long/er/N.md"))
    (world.root / "S.md").write_bytes(b"new text\n\n[[long/er/N]] and [[long/er/n|x]]\n")
    world.engine.refresh()

    world.remember(("long/er/N.md", "a/N.md"))

    assert world.text("S.md") == "new text\n\n[[N]] and [[n|x]]\n"


def test_a_link_that_somebody_changed_meanwhile_keeps_its_form(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, SEVERAL)
    world.remember(("a/N.md", "long/er/N.md"))
    (world.root / "S.md").write_bytes(b"[[er/N]] [[long/er/N|y]]\n")
    world.engine.refresh()

    world.remember(("long/er/N.md", "a/N.md"))

    assert world.text("S.md") == "[[a/N]] [[a/N|y]]\n"


def test_what_a_link_said_is_left_where_it_would_lead_elsewhere_now(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, SEVERAL)
    world.remember(("a/N.md", "long/er/N.md"))
    (world.root / "N.md").write_bytes(b"")
    world.engine.refresh()

    world.remember(("long/er/N.md", "a/N.md"))

    assert world.text("S.md") == "[[a/N]] [[a/n|x]]\n"


def test_a_folder_goes_back_whole_or_file_by_file(tmp_path: Path) -> None:
    files = {**SEVERAL, "a/p.md": "[[N]]\n"}
    world = relinking.make(tmp_path, files)
    before = world.files()

    world.remember(("a", "zzz"))
    world.remember(("zzz", "a"))
    whole = world.files()
    world.remember(("a", "zzz"))
    world.remember(("zzz/N.md", "a/N.md"))
    world.remember(("zzz/p.md", "a/p.md"))

    assert whole == before
    assert world.files() == before


def test_several_moves_go_back_one_by_one_or_together(tmp_path: Path) -> None:
    files = {**SEVERAL, "a/M.md": "[[N]] [[../bb/N]]\n", "Q.md": "[[N]] [[M]] [m](a/M.md)\n", "c/M.md": ""}
    world = relinking.make(tmp_path, files)
    before = world.files()

    for together in (False, True):
        world.remember(("a/N.md", "x/y/N.md"))
        world.remember(("a/M.md", "long/folder/M.md"))
        assert world.files() != before
        back = [("long/folder/M.md", "a/M.md"), ("x/y/N.md", "a/N.md")]
        for batch in [back] if together else [[pair] for pair in back]:
            world.remember(*batch)
        assert world.files() == before


def test_a_link_that_was_rewritten_twice_goes_all_the_way_back(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, SEVERAL)

    world.remember(("bb/T.md", "T.md"))
    world.remember(("bb/N.md", "long/er/N.md"))
    away = world.text("T.md")
    world.remember(("T.md", "bb/T.md"), ("long/er/N.md", "bb/N.md"))

    assert away == "[[long/er/N]] [[S]]\n"
    assert world.text("bb/T.md") == SEVERAL["bb/T.md"]


def test_a_rename_and_back_keeps_the_case_of_links(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, {"S.md": "[[n]] [[N]] ![[n#H]]\n", "N.md": ""})

    world.remember(("N.md", "M.md"))
    world.remember(("M.md", "N.md"))

    assert world.text("S.md") == "[[n]] [[N]] ![[n#H]]\n"


def test_a_journal_that_has_forgotten_is_no_obstacle(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, SEVERAL)
    world.remember(("a/N.md", "long/er/N.md"))
    world.state.journal.prune(max_age_days=-1)

    world.remember(("long/er/N.md", "a/N.md"))

    assert world.text("S.md") == "[[a/N]] [[a/n|x]]\n"
