"""What reaches the terminal, and with which exit status: nothing that it would obey."""

import contextlib
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from clustergate import cli
from clustergate.cli.passing_on import PassingOnParser
from clustergate.core.model import ClustergateError, OutputError, Run
from clustergate.core.notation import printable
from clustergate.report import console, terminal
from clustergate.run.execute import execute
from clustergate.run.reframe import Call

# The title of a window, a colour by one control character of eight bits, a line written over, and
# a text that reads from right to left.
HOSTILE = "\x1b]0;title\x07\x9b31mred\rover\u202ecba\u2028"
SHOWN = "␛]0;title␇\ufffd31mred␍over\ufffdcba\ufffd"


def test_printable_keeps_what_can_be_read():
    assert printable("tab\tline\nümlaut 大") == "tab\tline\nümlaut 大"
    assert printable(HOSTILE) == SHOWN
    assert printable(SHOWN) == SHOWN


def test_a_command_prints_nothing_that_a_terminal_obeys(monkeypatch, capsys):
    def command(arguments):
        print(HOSTILE)
        sys.stderr.writelines([HOSTILE, "\n"])
        raise ClustergateError(HOSTILE)

    only(monkeypatch, command, judges=False)
    assert cli.main([]) == 2
    said = capsys.readouterr()
    assert said.out == f"{SHOWN}\n"
    assert said.err == f"{SHOWN}\nclustergate: {SHOWN}\n"


def test_an_argument_is_not_obeyed_either(capsys):
    with pytest.raises(SystemExit):
        cli.main(["machine", "\x1b[31m"])
    said = capsys.readouterr().err
    assert "␛[31m" in said
    assert "\x1b" not in said


def test_the_name_of_a_file_is_not_obeyed(tmp_path):
    program = Path(sys.executable).parent / "clustergate"
    ended = subprocess.run(
        [program, "parse", "\x1b[2Jnothing"], cwd=tmp_path, capture_output=True, text=True
    )
    assert "␛[2Jnothing" in ended.stderr
    assert "\x1b" not in ended.stderr


def test_the_summary_shows_notes_from_elsewhere():
    run = Run("r", "local", "smoke", "2026-11-22T10:00:00+00:00", 1.0, (), changes=(HOSTILE,))
    said = terminal.render(run, width=100)
    assert "␛]0;title" in said
    assert printable(said) == said


def test_colours_are_our_own_and_text_is_not_obeyed(capsys, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    out = console.new_console(80, colour=True)
    out.print(f"{HOSTILE} and", "ours", style="cyan")
    said = capsys.readouterr().out
    ours = said.replace("\x1b[36m", "").replace("\x1b[0m", "")
    assert ours != said
    assert "␛]0;title" in ours
    assert printable(ours) == ours
    monkeypatch.setenv("NO_COLOR", "1")
    console.new_console(80, colour=True).print("ours", style="cyan")
    assert "\x1b" not in capsys.readouterr().out


def test_what_reframe_prints_is_kept_without_control_characters(tmp_path):
    log = tmp_path / "reframe.out"
    said = ["printf", "a \\033[31m b\\n"]
    call = Call("x", said, {"CLUSTERGATE_RUN_ID": "x"}, log.with_suffix(".json"))
    assert execute(call, print) == 0
    assert log.read_text() == "a ␛[31m b\n"


# --- who says which exit status ---------------------------------------------------------------


def only(monkeypatch, run, *, judges=True):
    """Let the command line have one command, which does as told."""
    parser = PassingOnParser()
    parser.set_defaults(run=run, judges=judges)
    monkeypatch.setattr(cli, "build_parser", lambda argv: parser)


@pytest.mark.parametrize("error", [RuntimeError("a fault"), MemoryError(), RecursionError("deep")])
def test_a_fault_of_the_suite_is_no_verdict(monkeypatch, capsys, error):
    def run(arguments):
        raise error

    only(monkeypatch, run)
    assert cli.main([]) == 2
    told = capsys.readouterr().err
    assert "Traceback" in told
    assert (
        f"clustergate: internal error ({type(error).__name__}): a bug in the suite, not a verdict"
        in told
    )


def test_a_command_that_does_not_load_is_no_verdict(monkeypatch, capsys):
    monkeypatch.setattr(cli, "COMMANDS", ("no-such-command",))
    assert cli.main(["no-such-command"]) == 2
    assert "internal error (ModuleNotFoundError)" in capsys.readouterr().err


@pytest.mark.parametrize("home", ["/shared", "/home/me"])
def test_private_files_of_another_user_are_no_fault(monkeypatch, capsys, home):
    def run(arguments):
        raise PermissionError(13, "Permission denied", "/shared/builds/mpich.lock")

    only(monkeypatch, run)
    monkeypatch.setenv("CLUSTERGATE_HOME", home)
    assert cli.main([]) == 2
    told = capsys.readouterr().err
    assert told.startswith("clustergate: /shared/builds/mpich.lock is not open to ")
    assert "share it with your group" in told
    assert ("CLUSTERGATE_HOME" in told) == (home == "/shared")
    assert "Traceback" not in told


@pytest.mark.parametrize(("judges", "status"), [(True, 2), (False, 1)])
def test_bad_data_is_no_verdict_where_one_is_expected(monkeypatch, judges, status):
    def run(arguments):
        raise OutputError("cut off")

    only(monkeypatch, run, judges=judges)
    assert cli.main([]) == status


def test_every_command_whose_one_is_a_verdict_says_so():
    parser = cli.build_parser()
    for words in (["check"], ["gate"], ["screen"], ["evaluation", "run", "003"]):
        assert parser.parse_args(words).judges, words


def ended(script, reader=None, **environment):
    """Return the exit status of a command whose output goes to a reader, and what arrived."""
    words = "import sys; from clustergate import cli\n" + script
    with subprocess.Popen(
        [sys.executable, "-c", words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **environment},
    ) as process:
        if reader == "gone":
            assert process.stdout is not None
            process.stdout.close()
            process.stdout = None
        out, err = process.communicate()
    return process.returncode, out, err.decode()


JUDGED = """
from clustergate.cli.passing_on import PassingOnParser
def run(arguments):
    print("INCONCLUSIVE ─ …")
    print("x" * 100_000)
    return 1
def parser(argv):
    found = PassingOnParser()
    found.set_defaults(run=run, judges=%s)
    return found
cli.build_parser = parser
sys.exit(cli.main([]))
"""


def test_a_verdict_outlives_its_reader():
    status, _, told = ended(JUDGED % True, "gone")
    assert (status, told) == (1, "")
    status, _, told = ended(JUDGED % False, "gone")
    assert (status, told) == (141, "")


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_a_verdict_is_printed_whatever_the_terminal_can_show(encoding):
    status, out, told = ended(JUDGED % True, PYTHONIOENCODING=encoding)
    assert (status, told) == (1, "")
    assert out.startswith(b"INCONCLUSIVE - ...\n")


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM], ids=str)
def test_second_signal_does_not_stop_the_first(first):
    """`timeout -s INT` and a dying shell sent both, and ReFrame was never told to end its jobs."""
    ended = []
    before = [signal.getsignal(number) for number in cli._SIGNALS]

    def run() -> None:
        try:
            signal.raise_signal(first)
        except KeyboardInterrupt:
            for second in cli._SIGNALS:
                signal.raise_signal(second)
            ended.append("its jobs")
            raise

    with pytest.raises(KeyboardInterrupt), cli._forward_signals():
        run()
    assert ended == ["its jobs"]
    assert [signal.getsignal(number) for number in cli._SIGNALS] == before


COLOURED = """
import sys
from clustergate.cli.streams import printable_streams, print_coloured, survive_broken_pipe
from clustergate.core.model import Run
from clustergate.report import console, terminal
with printable_streams(), survive_broken_pipe():
    console.print_lines(["STAY CLOSED: \x1b[31mn1", "  regression: HPL", "machine: green"])
    run = Run("r1", "local", "smoke", "2026-11-21T10:00:00+00:00", 10.0, ())
    print_coloured(terminal.render(run, width=80, colour=sys.stdout.isatty()))
"""


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [({}, True), ({"NO_COLOR": ""}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
)
def test_terminal_has_colour_unless_no_color(variables, coloured):
    environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLORTERM")}
    environment |= {"TERM": "xterm", **variables}
    master, slave = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", COLOURED], env=environment, stdout=slave
    ) as process:
        os.close(slave)
        out = b""
        with contextlib.suppress(OSError):
            while block := os.read(master, 4096):
                out += block
    os.close(master)
    assert process.returncode == 0
    assert (b"\x1b[31mSTAY CLOSED\x1b[0m: " in out) is coloured
    assert (b"  \x1b[31mregression\x1b[0m: HPL" in out) is coloured
    assert out.count(b"\x1b[3") == (3 if coloured else 0), out
    assert b"\x1b[31mn1" not in out


@pytest.mark.parametrize(
    ("line", "end", "style"),
    [
        (" ✓ NOTHING WRONG FOUND. No earlier run", 22, "green"),
        (" ~ TOO BUSY TO JUDGE. Others used", 20, "yellow"),
        (" ✗ SLOWER: 1 of 777 results", 9, "red"),
        (" ! doubtful (*): 3 more", 2, "yellow"),
    ],
)
def test_an_answer_has_the_colour_of_its_mark(line, end, style):
    text = console._with_colour(line)
    assert [(span.start, span.end, span.style) for span in text.spans] == [(0, end, style)]


def test_a_pipe_has_no_colour():
    ended = subprocess.run([sys.executable, "-c", COLOURED], capture_output=True)
    assert ended.returncode == 0, ended.stderr
    assert b"\x1b" not in ended.stdout
