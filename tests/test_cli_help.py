"""What the command line says of itself, and what a shell completes."""

import importlib.metadata
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from clustergate import cli
from clustergate.cli.completion import SHELLS
from clustergate.cli.overview import ABOUT, GROUPS, overview
from clustergate.paths import checkout

MODULES = {
    path.stem.replace("_", "-")
    for path in Path(cli.__file__).parent.glob("*.py")
    if "\nDESCRIPTION = " in path.read_text(encoding="utf-8")
}


def test_every_command_has_its_place_in_the_overview() -> None:
    assert set(ABOUT) == MODULES
    assert sum(map(len, GROUPS.values())) == len(ABOUT)
    assert max(map(len, overview().splitlines())) <= 80


def typed() -> list[str]:
    return [example for about in ABOUT.values() for example in about.examples]


@pytest.mark.parametrize("example", typed())
def test_every_example_can_be_typed(example: str) -> None:
    # Of a line for the shell, what is the command's own.
    own = re.sub(r"^.*clustergate | > .*$|\)\"$", "", example)
    words = shlex.split(own)
    assert cli.build_parser(words).parse_args(words).run


# What takes longer to load than what only looks at files may take.
SLOW = {"jinja2", "jsonschema", "numpy", "polars", "reframe", "requests", "scipy", "yaml"}


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["-h"],
        ["--version"],
        ["hpl-input", "--cores-per-node=2", "--memory-per-node=4GiB", "--ranks-per-node=2"],
        ["list", "runs"],
        ["machine", "--help"],
        ["open", "last"],
        ["parse", str(checkout() / "tests/data/hpl/hpl-2.0-mpich-grids.txt")],
        ["prune", "--help"],
        ["show", "last"],
    ],
)
def test_what_only_looks_loads_little(words: list[str], tmp_path: Path) -> None:
    script = (
        f"import sys; from clustergate import cli\n"
        f"try: status = cli.main({words})\n"
        "except SystemExit as ended: status = ended.code\n"
        f"print(status, sorted({SLOW}.intersection(sys.modules)))\n"
    )
    run = tmp_path / "results" / "runs" / "20261101T000000Z-r1"
    (run / "cases").mkdir(parents=True)
    (run / "report.html").write_text("<p>", encoding="utf-8")
    said = {**os.environ, "CLUSTERGATE_HOME": str(tmp_path), "DISPLAY": "", "WAYLAND_DISPLAY": ""}
    said["BROWSER"] = ""
    ended = subprocess.run(
        [sys.executable, "-c", script], env=said, capture_output=True, text=True, check=True
    )
    assert ended.stdout.splitlines()[-1] == "0 []"


def test_the_overview_names_every_group(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    told = capsys.readouterr().out
    for group in GROUPS:
        assert f"{group}:" in told


def test_what_is_no_command_is_told_with_all_that_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["chek"])
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert all(f"'{name}'" in told for name in ABOUT)


def test_a_command_s_help_ends_in_its_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["compare", "--help"])
    assert capsys.readouterr().out.endswith(
        "examples:\n  clustergate compare previous last\n"
        "  clustergate compare last:mpich last:openmpi --all\n"
    )


def test_commands_of_other_packages_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    names = [one.name for one in importlib.metadata.entry_points(group="clustergate.commands")]
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    told = capsys.readouterr().out
    assert all(f"\n  {name}\n" in told for name in names)


@pytest.fixture(scope="module")
def scripts() -> dict[str, str]:
    script = "import sys; from clustergate import cli; sys.exit(cli.main(['completion', {!r}]))"
    return {
        shell: subprocess.run(
            [sys.executable, "-c", script.format(shell)], capture_output=True, text=True, check=True
        ).stdout
        for shell in SHELLS
    }


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_can_read_its_completion(
    shell: str, scripts: dict[str, str], tmp_path: Path
) -> None:
    told = scripts[shell]
    assert all(name in told for name in (*ABOUT, "older", "strict"))
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    path = tmp_path / "completion"
    path.write_text(told, encoding="utf-8")
    ended = subprocess.run([program, "-n", str(path)], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_bash_completes_commands_and_options(scripts: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "completion"
    path.write_text(scripts["bash"], encoding="utf-8")
    found = {}
    for line in ("clustergate pru", "clustergate check --str", "clustergate list ru"):
        words = line.split()
        script = (
            f"source {shlex.quote(str(path))}; COMP_WORDS=({line}); "
            f"COMP_CWORD={len(words) - 1}; COMP_LINE={line!r}; "
            "function=$(complete -p clustergate | sed 's/.*-F \\([^ ]*\\).*/\\1/'); "
            f'$function clustergate {words[-1]} {words[-2]}; echo "${{COMPREPLY[*]}}"'
        )
        ended = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
        found[line] = ended.stdout.split()
    assert list(found.values()) == [["prune"], ["--strict"], ["runs"]]
