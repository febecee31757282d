"""Make a vault out of made-up words, and change it as people do: edit, add, delete, rename, move folders."""

import random
import shutil
from dataclasses import dataclass
from pathlib import Path

_SYLLABLES = (
    "ba",
    "ce",
    "dor",
    "fin",
    "gul",
    "han",
    "ik",
    "jo",
    "kel",
    "lu",
    "mar",
    "né",
    "or",
    "pü",
    "qua",
    "rit",
    "so",
    "ta",
)
_OTHERS = ("検索", "ノート", "链接", "заметка", "العربية")


@dataclass(frozen=True, slots=True, kw_only=True)
class Garden:
    """Hold a vault, and the words that its notes are made of."""

    root: Path
    words: tuple[str, ...]

    @classmethod
    def plant(cls, root: Path, pick: random.Random, notes: int) -> "Garden":
        """Write a new vault."""
        made = ("".join(pick.choices(_SYLLABLES, k=pick.randrange(1, 5))) for _ in range(3_000))
        garden = cls(root=root, words=(*dict.fromkeys(made), *_OTHERS))
        for number in range(notes):
            garden.add(pick, f"area {number % 20}/note {number}.md")
        return garden

    def disturb(self, pick: random.Random, count: int) -> None:
        """Change this many files, or all where there are fewer."""
        acts = (self._edit, self._edit, self._edit, self._cut, self._add, self._delete, self._rename, self._copy)
        notes = sorted(self.root.rglob("*.md"))
        files = pick.sample(notes, min(count, len(notes)))
        for file in files:
            pick.choice(acts)(pick, file)
        if pick.random() < 0.1:
            folder = pick.choice(sorted(path for path in self.root.iterdir() if path.is_dir()))
            folder.rename(self.root / f"area {pick.randrange(10**9)}")

    def add(self, pick: random.Random, name: str) -> None:
        """Write a note."""
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        sections = "\n\n".join(self._section(pick) for _ in range(pick.randrange(1, 7)))
        properties = f"---\nstatus: {pick.choice(self.words)}\ntags: [{pick.choice(self.words)}]\n---\n"
        file.write_text(f"{properties}\n{sections}\n", encoding="utf-8")

    def _section(self, pick: random.Random) -> str:
        text = " ".join(pick.choices(self.words, k=pick.randrange(20, 120)))
        return f"## {pick.choice(self.words)}\n\n{text} [[note {pick.randrange(1_500)}]] #{pick.choice(self.words)}"

    def _edit(self, pick: random.Random, file: Path) -> None:
        file.write_text(f"{file.read_text(encoding='utf-8')}\n{self._section(pick)}\n", encoding="utf-8")

    def _cut(self, _: random.Random, file: Path) -> None:
        lines = file.read_text(encoding="utf-8").splitlines()
        file.write_text("\n".join(lines[: len(lines) // 2]), encoding="utf-8")

    def _add(self, pick: random.Random, _: Path) -> None:
        self.add(pick, f"area {pick.randrange(25)}/new {pick.randrange(10**9)}.md")

    def _delete(self, _: random.Random, file: Path) -> None:
        file.unlink()

    def _rename(self, pick: random.Random, file: Path) -> None:
        file.rename(file.with_name(f"renamed {pick.randrange(10**9)}.md"))

    def _copy(self, pick: random.Random, file: Path) -> None:
        shutil.copyfile(file, file.with_name(f"copy {pick.randrange(10**9)}.md"))
