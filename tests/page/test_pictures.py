"""The pictures of the docs: the README's recording, and those that the plugin's tests take."""

import struct
from pathlib import Path

from playwright.sync_api import Page

from tests.page import pictures, plugin_pictures


def test_frames_become_an_animation_that_a_browser_shows(tab: Page) -> None:
    tab.set_viewport_size({"width": 40, "height": 30})
    frames: list[bytes] = []
    for color in ("red", "green", "blue"):
        tab.set_content(f"<body style='background: {color}'>")
        frames.append(tab.screenshot())

    made = pictures.animated(frames, [0.5, 1, 1.5])

    controls = [data for kind, data in pictures.chunks(made) if kind == b"fcTL"]
    assert [struct.unpack(">HH", data[20:24]) for data in controls] == [(500, 1000), (1000, 1000), (1500, 1000)]
    assert [struct.unpack(">I", data[:4])[0] for data in controls] == [0, 1, 3]
    tab.route("**/moving.png", lambda route: route.fulfill(body=made, content_type="image/png"))
    tab.route("**/here", lambda route: route.fulfill(body="<img src=/moving.png>", content_type="text/html"))
    tab.goto("http://127.0.0.1:9/here")
    assert tab.evaluate("document.images[0].decode().then(() => document.images[0].naturalWidth)") == 40


def test_pictures_of_skipped_tests_are_named_and_none_is_replaced(tmp_path: Path) -> None:
    names = [*plugin_pictures.TAKEN]
    seen, docs = tmp_path / "seen", tmp_path / "docs"
    seen.mkdir()
    docs.mkdir()
    for name in names[1:]:
        (seen / f"{name}.png").write_bytes(name.encode())
    missing = plugin_pictures.copy_pictures(seen, docs)
    left = [*docs.iterdir()]
    (seen / f"{names[0]}.png").touch()

    assert (missing, left) == (names[:1], [])
    assert plugin_pictures.copy_pictures(seen, docs) == []
    assert {path.stem for path in docs.iterdir()} == {*plugin_pictures.TAKEN.values()}
