"""Run the tests, or any command, with Python for Windows under Wine: `python -m scripts.windows --help`.

Wine isn't Windows, but does much as Windows does: paths, names of devices, files that are open elsewhere, pipes.
Python's own libraries for Windows come from the wheel of Panda3D, which packs programs for it; Python's modules from
the Python that runs this, which has to be a 3.11; all else are the wheels of requirements.lock.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
FOLDER: Final = ROOT / ".windows"
PYTHON: Final = FOLDER / "python"
PACKAGES: Final = PYTHON / "Lib/site-packages"
PREFIX: Final = FOLDER / "prefix"
TOOLS: Final = FOLDER / "tools"
WINDOWS_WHEEL: Final = "panda3d==1.10.16"
"""Has the libraries of Python 3.11.9 as python.org signs them."""
VERSION: Final = (3, 11)
MATHS: Final = "api-ms-win-crt-math-l1-1-0.dll"
OWN_MATHS: Final = "kna-ms-win-crt-math-l1-1-0.dll"
"""Takes its place for numpy, by a name of the same length: Wine 10 lacks C's functions of complex numbers."""
COMPLEX: Final = re.compile(r"(?P<base>c(?:abs|arg|cos|cosh|exp|imag|pow|real|sin|sinh|tan|tanh))(?P<kind>[fl]?)")
REAL: Final = frozenset({"cabs", "carg", "cimag", "creal"})
START_C: Final = r"""
#include <stdio.h>
#include <windows.h>
int wmain(int count, wchar_t **words) {
  HMODULE python = LoadLibraryW(L"python311.dll");
  if (!python) { fprintf(stderr, "there is no python311.dll: %lu\n", GetLastError()); return 3; }
  return ((int (*)(int, wchar_t **))GetProcAddress(python, "Py_Main"))(count, words);
}
"""
RANDOM_C: Final = r"""
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T count) {
  return SystemFunction036(bytes, (ULONG)count);
}
"""
"""Wine 8 lacks it, which all that is written in Rust asks for."""
NOTHING_C: Final = "int DllMain(void *own, unsigned why, void *more) { return 1; }\n"


def main() -> int:
    """Set up what is missing, and run the command; return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--knap", action="store_true", help="run the command knap, not pytest, with all other arguments"
    )
    options, arguments = parser.parse_known_args()
    if sys.version_info[:2] != VERSION or not shutil.which("wine") or not shutil.which("uv"):
        print("windows: this needs Python 3.11, and wine and uv on the PATH", file=sys.stderr)
        return 2
    if not (PYTHON / OWN_MATHS).exists():  # which is made last
        set_up()
    if options.knap:
        return wine("-m", "knapper.cli", *arguments)
    usual = ["-m", "not thorough", "--ignore", "tests/page", "--override-ini", "timeout=120"]
    return wine("-m", "pytest", "-q", "-p", "no:cacheprovider", *usual, *arguments)


def wine(*arguments: str) -> int:
    """Run Python for Windows."""
    quiet = {"WINEDEBUG": "-all", "WINEDLLOVERRIDES": "winedbg.exe=d;winemenubuilder.exe=d"}
    command = ["wine", str(PYTHON / "python.exe"), *arguments]
    environment = {**os.environ, **quiet, "WINEPREFIX": str(PREFIX)}
    # Pipes, as Python for Windows doesn't start on what else Wine may have behind the standard streams.
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        bufsize=0,
    ) as process:
        if process.stdin and process.stdout:
            process.stdin.close()
            while piece := process.stdout.read(65_536):
                _ = sys.stdout.buffer.write(piece)
                sys.stdout.buffer.flush()
        return process.wait()


def set_up() -> None:
    """Put Python for Windows and its packages together."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    (PYTHON / "DLLs").mkdir(parents=True)
    print("windows: fetching Python's libraries, packages and a compiler")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    run(*pip, "install", "--target", str(TOOLS), "ziglang", "pefile")
    only_wheels = ("--only-binary", ":all:", "--no-deps")
    run(*pip, "download", *only_wheels, "--platform", "win_amd64", "--dest", str(FOLDER), WINDOWS_WHEEL)
    with zipfile.ZipFile(next(FOLDER.glob("panda3d*.whl"))) as wheel:
        for name in wheel.namelist():
            file = Path(name).name
            if name.startswith("deploy_libs/") and not file.startswith("api-ms-"):
                is_base = file.lower().startswith(("python", "vcruntime"))
                (PYTHON / ("" if is_base else "DLLs") / file).write_bytes(wheel.read(name))
    left_out = shutil.ignore_patterns("site-packages", "__pycache__", "lib-dynload", "config-*", "test")
    shutil.copytree(os.path.dirname(os.__file__), PYTHON / "Lib", ignore=left_out)  # noqa: PTH120 - of a module
    windows = ("--python-platform", "x86_64-pc-windows-msvc", "--python-version", "3.11", "--target", str(PACKAGES))
    # Copies, as some are patched below, and uv's own store must not be.
    options = ("--quiet", "--link-mode", "copy")
    run("uv", "pip", "install", *options, *windows, *only_wheels, "--requirement", "requirements.lock")
    (PACKAGES / "knapper.pth").write_text("Z:" + str(ROOT / "src").replace("/", "\\"), encoding="utf-8")
    build_libraries()


def build_libraries() -> None:
    """Compile what the wheel or Wine lacks."""
    compile_c("python.exe", START_C, "-municode")
    compile_c("bcryptprimitives.dll", RANDOM_C, "-shared", "-ladvapi32")
    forwards = [f"{name} = python311.{name}" for name in exports(PYTHON / "python311.dll")]
    compile_c("python3.dll", NOTHING_C, "-shared", names=forwards)
    libraries = [*PACKAGES.glob("numpy/**/*.pyd"), *PACKAGES.glob("numpy.libs/*.dll")]
    needed = sorted({name for file in libraries for name in imports(file, MATHS)})
    own = {name: match for name in needed if (match := COMPLEX.fullmatch(name))}
    code = "#include <complex.h>\n" + "\n".join(complex_function(name, match) for name, match in own.items())
    names = [f"{name} = own_{name}" if name in own else f"{name} = ucrtbase.{name}" for name in needed]
    for file in libraries:
        file.write_bytes(file.read_bytes().replace(MATHS.encode(), OWN_MATHS.encode()))
    compile_c(OWN_MATHS, code + "\n" + NOTHING_C, "-shared", names=names)


def complex_function(name: str, match: re.Match[str]) -> str:
    """Return C for a function; Microsoft's long double is a double."""
    kind = "float" if match["kind"] == "f" else "double"
    function = match["base"] + ("f" if kind == "float" else "")
    result = kind if match["base"] in REAL else f"{kind} complex"
    parameters = ("a", "b") if match["base"] == "cpow" else ("a",)
    declared = ", ".join(f"{kind} complex {one}" for one in parameters)
    return f"{result} own_{name}({declared}) {{ return {function}({', '.join(parameters)}); }}"


def compile_c(target: str, code: str, *flags: str, names: Sequence[str] = ()) -> None:
    """Compile C for Windows; *names* are what a library exports."""
    source = FOLDER / "source.c"
    source.write_text(code, encoding="utf-8")
    inputs = [str(source)]
    if names:
        definition = FOLDER / "source.def"
        definition.write_text(f"LIBRARY {target}\nEXPORTS\n" + "\n".join(names), encoding="utf-8")
        inputs.append(str(definition))
    compiler = [sys.executable, "-m", "ziglang", "cc", "-target", "x86_64-windows-gnu", "-O1"]
    run(*compiler, *inputs, "-o", str(PYTHON / target), *flags, PYTHONPATH=str(TOOLS))


def exports(file: Path) -> Iterator[str]:
    """Yield the names that a library exports."""
    code = (
        "import pefile, sys; found = pefile.PE(sys.argv[1]).DIRECTORY_ENTRY_EXPORT.symbols; "
        "print(*(one.name.decode() for one in found if one.name))"
    )
    yield from read_names(code, str(file))


def imports(file: Path, library: str) -> Iterator[str]:
    """Yield the names that a file imports from a library."""
    code = (
        "import pefile, sys; pe = pefile.PE(sys.argv[1]); print(*(i.name.decode() for d in pe.DIRECTORY_ENTRY_IMPORT "
        "if d.dll.decode().lower() == sys.argv[2] for i in d.imports))"
    )
    yield from read_names(code, str(file), library)


def read_names(code: str, *arguments: str) -> list[str]:
    """Run Python with the fetched tools, and return the words that it prints."""
    command = [sys.executable, "-c", code, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(TOOLS)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()


def run(*command: str, **environment: str) -> None:
    """Run a command that has to succeed."""
    _ = subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, check=True)


if __name__ == "__main__":
    sys.exit(main())
