"""Find the data that benchmarks read, and the folder they work in."""

import argparse
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Hold where data comes from and where work goes."""

    data: Path
    """Public vaults and judged collections; kept out of the project."""
    cache: Path
    """Unpacked and generated vaults, and the peer's virtual environment; all of it can be deleted."""

    def vault(self, name: str) -> Path | None:
        """Unpack a real vault once; None where its archive is missing."""
        return self._unpack(self.data / "vaults" / f"{name}.tar.xz")

    def judged_set(self, name: str) -> Path | None:
        """Unpack a collection as `knap eval` reads it; None where its archive is missing."""
        return self._unpack(self.data / "ir" / "sets" / f"{name}.tar.xz")

    def _unpack(self, archive: Path) -> Path | None:
        """Unpack an archive below the cache, once; give its only folder, or the folder that it was unpacked into."""
        name = archive.name.partition(".")[0]
        folder = self.cache / name
        if not archive.exists():
            return None
        if not folder.exists():
            partial = folder.with_name(f"{name}.part")
            partial.mkdir(parents=True, exist_ok=True)
            with tarfile.open(archive) as packed:
                packed.extractall(partial, filter="data")
            partial.rename(folder)
        inner = [path for path in folder.iterdir() if path.is_dir()]
        return inner[0] if len(inner) == 1 else folder

    def collection(self, name: str) -> Path | None:
        """Give a judged collection's folder; None where it is missing."""
        folder = self.data / "ir" / name
        return folder if (folder / "queries.jsonl").exists() else None


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder of vaults/ and ir/")
    parser.add_argument(
        "--cache", type=Path, default=Path(tempfile.gettempdir()) / "knapper-bench", help="folder to work in"
    )


def of(options: argparse.Namespace) -> Places:
    options.cache.mkdir(parents=True, exist_ok=True)
    return Places(data=options.data.resolve(), cache=options.cache.resolve())
