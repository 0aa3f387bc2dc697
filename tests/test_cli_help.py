"""What the command line says of itself, and what a shell completes."""

import importlib.metadata
import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from clustergate import cli
from clustergate.cli.completion import SHELLS
from clustergate.cli.overview import ABOUT, GROUPS, examples_of, overview
from clustergate.core.paths import checkout

MODULES = {
    path.stem.replace("_", "-")
    for path in Path(cli.__file__).parent.glob("*.py")
    if "\nDESCRIPTION = " in path.read_text(encoding="utf-8")
}


def test_every_command_has_its_place_in_the_overview() -> None:
    assert set(ABOUT) == MODULES
    assert sum(map(len, GROUPS.values())) == len(ABOUT)
    assert max(map(len, overview().splitlines())) <= 80


@pytest.mark.parametrize("command", sorted(ABOUT))
def test_the_help_of_a_command_fits_80_columns(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        cli.main([command, "--help"])
    assert [line for line in capsys.readouterr().out.splitlines() if len(line) > 80] == []


def test_the_bare_command_says_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    said = capsys.readouterr().err
    assert "measure this machine and judge it" in said
    assert "clustergate show last" in said


@pytest.mark.parametrize(
    ("words", "meant"),
    [("chekc", "check"), ("list run", "runs"), ("completion bsh", "bash")],
)
def test_a_choice_that_is_none_is_told_with_the_one_that_was_meant(
    words: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        cli.main(words.split())
    assert capsys.readouterr().err.endswith(f"; did you mean {meant!r}?\n")


def typed() -> list[str]:
    return [example for about in ABOUT.values() for example in about.examples]


@pytest.mark.parametrize("example", typed())
def test_every_example_can_be_typed(example: str) -> None:
    # Of a line for the shell, what is the command's own.
    own = re.sub(r"^.*clustergate | >>? .*$|\)\"$", "", example)
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


@pytest.mark.parametrize("command", sorted(ABOUT))
def test_every_example_names_the_program(command: str) -> None:
    shown = examples_of(command).splitlines()[2:]
    assert [line for line in shown if not re.match(r"  (eval \"\$\()?clustergate ", line)] == []


def test_commands_of_other_packages_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    names = [one.name for one in importlib.metadata.entry_points(group="clustergate.commands")]
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    told = capsys.readouterr().out
    # With what they are for, as the suite's own are.
    assert all(re.search(rf"^  {name} +\w+ \w+", told, re.MULTILINE) for name in names)
    assert max(map(len, told.splitlines())) <= 80


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


def test_fish_completes_commands_options_and_parts(scripts: dict[str, str], tmp_path: Path) -> None:
    if not shutil.which("fish"):
        pytest.skip("fish is not installed")
    path = tmp_path / "clustergate.fish"
    path.write_text(scripts["fish"], encoding="utf-8")
    # It completes commands that it finds.
    (tmp_path / "clustergate").touch(mode=0o755)
    asked = ("pru", "check --str", "list ru", "golden ver")
    lines = "; ".join(f"complete -C 'clustergate {words}'" for words in asked)
    ended = subprocess.run(
        ["fish", "-c", f"source {path}; {lines}"],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    found = [line.split("\t") for line in ended.stdout.splitlines()]
    assert [name for name, _ in found] == ["prune", "--strict", "runs", "verify"]
    assert found[0][1] == ABOUT["prune"].purpose


def test_zsh_completes_commands_options_and_parts(scripts: dict[str, str], tmp_path: Path) -> None:
    program = shutil.which("zsh")
    if program is None:
        pytest.skip("zsh is not installed")
    (tmp_path / "_clustergate").write_text(scripts["zsh"], encoding="utf-8")
    start = f"fpath=({tmp_path} $fpath); autoload -U compinit; compinit -u -D; PS1=RE''ADY\n"
    for words, whole in {"pru": "prune", "check --str": "--strict", "golden ver": "verify"}.items():
        master, slave = pty.openpty()
        environment = {**os.environ, "TERM": "dumb", "HOME": str(tmp_path)}
        with subprocess.Popen(
            [program, "-f", "-i"], stdin=slave, stdout=slave, stderr=slave, env=environment
        ) as shell:
            os.close(slave)
            os.write(master, start.encode())
            _read_until(master, "READY")
            os.write(master, f"clustergate {words}\t".encode())
            # The same as one in a list and its whole, typed out, is the end of it.
            typed = _read_until(master, whole)
            shell.kill()
        os.close(master)
        assert whole in typed, words


def _read_until(terminal: int, text: str) -> str:
    """Return what a terminal shows until it shows a text, or nothing more for half a minute."""
    told = b""
    while text.encode() not in told and select.select([terminal], [], [], 30)[0]:
        told += os.read(terminal, 4096)
    return told.decode(errors="replace")


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
