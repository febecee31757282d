"""Run axe-core in a page, and give what it finds serious."""

from functools import cache
from pathlib import Path
from typing import Any, cast

from playwright.sync_api import Page

_STILL = """async () => {
    const ends = (one) => one.playState === 'running' && Number.isFinite(one.effect?.getComputedTiming().endTime);
    for (;;) {
        const moving = document.getAnimations().filter(ends);
        if (moving.length === 0) return;
        await Promise.all(moving.map((one) => one.finished.catch(() => undefined)));
    }
}"""
"""What turns forever, such as what shows that something loads, isn't waited for."""
SOURCE = Path(__file__).parents[2] / "ui" / "node_modules" / "axe-core" / "axe.min.js"


@cache
def _source() -> str:
    return SOURCE.read_text(encoding="utf-8")


def wait_until_still(tab: Page) -> None:
    """Wait until nothing fades or slides any more: colours in between have too little contrast."""
    tab.evaluate(_STILL)


def findings(tab: Page) -> list[str]:
    """List the serious findings once the page is still, each with the first element that it is about."""
    tab.evaluate(_source())
    wait_until_still(tab)
    options = {"resultTypes": ["violations"], "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}
    found = cast(
        "list[dict[str, Any]]", tab.evaluate("options => axe.run(document, options).then(r => r.violations)", options)
    )
    return [
        f"{row['id']}: {row['nodes'][0]['html'][:160]}" for row in found if row["impact"] in {"serious", "critical"}
    ]
