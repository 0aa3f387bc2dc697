import datetime
import difflib
import inspect
import json
import re
import shutil

import pytest
from filelock import Timeout

from clustergate.benchmarks.registry import every_check
from clustergate.cli import baseline, main
from clustergate.core import store
from clustergate.core.files.shared import locked
from clustergate.core.model import Better, Launch, Sample
from clustergate.judge.assembly import assemble, verdicts
from clustergate.judge.baselines.proposals import Rule
from clustergate.judge.history import listing, series
from clustergate.judge.judging import exit_status
from clustergate.judge.references import lookup
from clustergate.judge.references.lookup import load_references
from clustergate.judge.runs import median
from clustergate.machine.fingerprint import to_record
from clustergate.sites.modes import has_layout
from clustergate.sites.shape import Shape
from tests.builders import CONDITIONS, START, built, passed, ping, record
from tests.described_partitions import described

STEADY = (1.003, 0.998, 1.001, 0.997, 1.002, 0.999, 1.0, 1.004)
FIGURE = "PingPong.2p.8B.latency_us"
KEYS = ("ImbMpi1Check", "local:node", "mpich", "2-ranks-packed", "smoke")


def write_run(number, value, hours=2.0, more=(), start=START, **changes):
    """Store a run whose only case says that one figure has this value."""
    samples = (*(ping(value * (1 + order / 100), order=order) for order in range(3)), *more)
    started = start + datetime.timedelta(hours=number * hours)
    run_id = f"{started:%Y%m%dT%H%M%SZ}-{number}"
    store.write_case(run_id, record(*samples, **{"name": "case", "details": built(), **changes}))
    return run_id


@pytest.fixture
def references(tmp_path, monkeypatch):
    """Give the command a state folder and a folder of references of its own; return the latter."""
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(lookup, "site_file", lambda *parts: tmp_path.joinpath(*parts))
    # The machine of these runs has two cores, whatever the one at hand has.
    two = [described("local:node", Shape(2, 1))]
    monkeypatch.setattr(baseline, "has_layout", lambda _, *case: has_layout(two, *case))
    (tmp_path / "references").mkdir()
    return tmp_path / "references"


@pytest.fixture
def taken(references, capsys):
    """Take a first baseline of eight steady runs; return its file."""
    for number, value in enumerate(STEADY):
        write_run(number, value)
    assert run() == 0
    capsys.readouterr()
    return references / "local.yaml"


def run(*options):
    return main(["baseline", "--site", "local", *options])


def reference(path):
    return load_references(path, every_check()).at((*KEYS, FIGURE))


def test_a_first_baseline_is_a_valid_file(references, capsys):
    for number, value in enumerate(STEADY):
        write_run(number, value)
    assert run() == 0
    path = references / "local.yaml"
    found = reference(path)
    assert (found.value, found.lower, found.unit) == (0.997, None, "us")
    assert "24 launches, build b1, on n1, rule: best of 8 runs over 14.0 h" in found.origin
    told = capsys.readouterr().out
    assert f"{path} has 1 new reference from 8 runs, " in told
    assert [entry.name for entry in references.iterdir()] == ["local.yaml"]


def test_a_copy_of_a_run_is_told(references, capsys):
    for number, value in enumerate(STEADY):
        write_run(number, value, launches=[Launch(0, number + 0.5, 1.0)])
    original = write_run(8, 1.0, launches=[Launch(0, 9.5, 1.0)])
    copy = write_run(9, 1.0, launches=[Launch(0, 9.5, 1.0)])
    assert run() == 0
    told = capsys.readouterr()
    assert f"{copy} is left out: it is a copy of the run {original}\n" in told.err
    assert "from 9 runs" in told.out


def test_cases_with_too_few_runs_measured_by_one_command(references, capsys):
    for number, value in enumerate(STEADY[:3]):
        write_run(number, value)
        write_run(number, value, name="other", stack="openmpi")
    assert run() == 1
    told = capsys.readouterr().out
    assert "--check ImbMpi1Check --stack mpich --site local` 2 more times" in told
    assert "next: `clustergate check --mode smoke --site local` 2 more times for all" in told


def test_what_the_site_config_has_no_more_asks_for_no_runs(references, capsys):
    for number, value in enumerate(STEADY):
        write_run(number, value)
    write_run(0, 1.0, name="then", conditions={**CONDITIONS, "ranks": 4, "ranks_per_node": 4})
    assert run() == 0
    told = capsys.readouterr()
    assert "has 1 new reference from 8 runs" in told.out
    lost = "no longer has ImbMpi1Check with mpich (local:node, 4-ranks-packed, smoke): what was"
    assert lost in told.err


def test_a_second_baseline_of_the_same_runs_changes_nothing(taken, capsys):
    before = taken.read_text()
    assert run() == 0
    assert taken.read_text() == before
    told = capsys.readouterr().out
    assert f"{taken} is unchanged" in told
    assert re.search(r"PingPong latency_us +2p\.8B [+-]0\.0", told)


def test_two_baselines_at_once_do_not_overwrite(references, capsys, monkeypatch):
    for number, value in enumerate(STEADY):
        write_run(number, value)
    collect = series.collect

    def slowly(*selection):
        figures = collect(*selection)
        monkeypatch.setattr(series, "collect", collect)
        # The other's, of other runs.
        assert run("--runs", "6") == 0
        return figures

    monkeypatch.setattr(series, "collect", slowly)
    assert run("--json") == 2
    captured = capsys.readouterr()
    path = references / "local.yaml"
    assert f"{path} changed while this baseline was made" in captured.err
    assert "nothing was written" in captured.err
    assert '"code": "baseline.changed-meanwhile"' in captured.out
    assert "rule: best of 6 runs" in reference(path).origin
    noted = json.loads((store.runs_folder().parent / "baselines.json").read_text())
    assert len(noted) == 6
    assert run() == 0
    assert "rule: best of 8 runs" in reference(path).origin


def test_references_are_written_by_one_at_a_time(references, monkeypatch):
    for number, value in enumerate(STEADY):
        write_run(number, value)
    write, held = store.write_text, []

    def write_and_look(path, text):
        if path.suffix == ".yaml":
            with pytest.raises(Timeout), locked(listing.lock_of_baselines(), wait=False):
                pass
            held.append(path.name)
        write(path, text)

    monkeypatch.setattr(store, "write_text", write_and_look)
    assert run() == 0
    assert held == ["local.yaml"]


def test_a_script_reads_what_became_of_each_figure(references, capsys):
    for number, value in enumerate(STEADY):
        write_run(number, value)
        if number < 3:
            write_run(number, value, name="other", stack="openmpi")
    assert run("--dry-run", "--json") == 1
    planned = json.loads(capsys.readouterr().out)
    assert run("--json") == 1
    made = json.loads(capsys.readouterr().out)
    assert (planned.pop("written"), made.pop("written")) == (False, True)
    assert planned == made
    (new,), (refused,) = made["references"], made["refused"]
    assert tuple(new[key] for key in ("stack", "figure", "value")) == ("mpich", FIGURE, 0.997)
    assert (refused["stack"], refused["figures"]) == ("openmpi", [FIGURE])
    assert "2 more times" in refused["why"]


def test_a_dry_run_prints_the_difference_and_writes_nothing(taken, capsys):
    before = taken.read_text()
    for number, value in enumerate(STEADY, 8):
        write_run(number, 0.9 * value, more=[])
    assert run("--dry-run", "--since", "20261102T000000Z-8") == 0
    captured = capsys.readouterr()
    assert taken.read_text() == before
    lines = captured.out.splitlines(keepends=True)
    assert lines[:2] == ["--- a/references/local.yaml\n", "+++ b/references/local.yaml\n"]
    assert run("--since", "20261102T000000Z-8") == 0
    after = taken.read_text()
    named = ("a/references/local.yaml", "b/references/local.yaml")
    split = (before.splitlines(keepends=True), after.splitlines(keepends=True))
    assert lines == list(difflib.unified_diff(*split, *named))
    assert reference(taken).value == 0.8973


def test_a_dry_run_without_a_file_prints_all_of_it(references, capsys):
    for number, value in enumerate(STEADY):
        write_run(number, value)
    assert run("--dry-run") == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("--- /dev/null\n+++ b/references/local.yaml\n")
    assert "would get 1 new reference from" in captured.err
    assert list(references.iterdir()) == []


def test_drift_is_shown_and_what_became_worse_keeps_its_reference(taken, capsys):
    before = taken.read_text()
    for number, value in enumerate(STEADY, 8):
        write_run(number, 1.2 * value)
    assert run("--runs", "8") == 1
    assert taken.read_text() == before
    told = capsys.readouterr().out
    assert "2p.8B +20.0 (refused)" in " ".join(told.split())
    assert f"{FIGURE}: 20.0 % worse than the reference 0.997 us; find out what changed" in told
    reason = "the switch was replaced by a slower one"
    assert run("--runs", "8", "--accept-worse", "PingPong.*", "--because", reason) == 0
    assert reference(taken).value == 1.1964
    by = f"blessed by {store.user_name()}, {datetime.date.today()}"
    assert reference(taken).origin.endswith(f"{reason}, {by}")


def test_a_day_that_was_slow_is_named_with_what_to_do(references, capsys):
    for number in range(6):
        by = STEADY[number] * (1.4 if number == 2 else 1.0)
        conditions = {"processes": 2, "groups": 1}
        more = [
            Sample(
                *("PingPong", "latency_us", "us", Better.LOWER, conditions | {"bytes": size}),
                *(by * size * (1 + order / 100), order),
            )
            for size in (64, 512, 4096)
            for order in range(3)
        ]
        write_run(number, by, 24, more)
    assert run("--dry-run", "--json") == 0
    (left_out,) = json.loads(capsys.readouterr().out)["left_out"]
    assert (left_out["day"], left_out["check"]) == ("2026-11-03", "ImbMpi1Check")
    assert run() == 0
    said = "2026-11-03 left out of local:node, smoke: PingPong 40.2 % slower than on the other days"
    assert said in capsys.readouterr().out
    text = (references / "local.yaml").read_text()
    assert 'remark: "2026-11-03 left out: PingPong' in text
    assert "2026-11-03]" not in text


def test_a_tolerance_that_grows_is_told(taken, capsys):
    before = reference(taken).upper
    write_run(8, 1.6)
    assert run() == 0
    told = " ".join(capsys.readouterr().out.split())
    assert f"0.0 (tolerates {reference(taken).upper:.0%}, not {before:.0%})" in told


@pytest.mark.parametrize(
    "options",
    [["--accept-worse", "*"], ["--because", "so"]],
)
def test_worse_is_accepted_with_a_reason_alone(taken, capsys, options):
    assert run(*options) == 1
    assert "--accept-worse and --because go together" in capsys.readouterr().err


def test_much_better_is_accepted_by_a_person_alone(taken, capsys):
    """A machine that is twice as good was changed, or it never was so slow."""
    before = taken.read_text()
    for number, value in enumerate(STEADY, 8):
        write_run(number, value / 2)
    assert run("--runs", "8") == 1
    assert taken.read_text() == before
    told = capsys.readouterr().out
    assert f"--accept-better '{FIGURE}'" in told
    assert run("--runs", "8", "--accept-better", "PingPong.*") == 0
    assert reference(taken).value == 0.4985


def judged(path, value):
    """Return the exit statuses of check and gate for a run of this value, and what they say."""
    run_id = write_run(9999, value)
    (kept,) = store.read_cases(run_id)
    shutil.rmtree(store.run_folder(run_id))
    (case,) = assemble([], [passed(kept)], [kept], load_references(path, every_check()).find)
    found = verdicts([case])
    codes = {why.code for figure in case.figures for why in figure.judgement.reasons}
    return exit_status(found), exit_status(found, "gate"), codes


SUMMER = START - datetime.timedelta(weeks=12)


def week(number, value):
    """Store a run on each working day of a week, and take the baseline of its Friday."""
    for day in range(5):
        write_run(7 * number + day, value * STEADY[day], 24, start=SUMMER)
    return run()


def test_a_machine_that_creeps_does_not_take_its_references_along(references, capsys):
    """Each of its weekly baselines is slower by too little to be refused beside the one before."""
    path = references / "local.yaml"
    statuses, bounds = [], []
    for number in range(8):
        statuses.append(week(number, 1.015**number))
        bounds.append(reference(path).upper)
        if statuses[-1]:
            break
        capsys.readouterr()
    found = len(statuses) - 1
    assert statuses == [0] * found + [1]
    assert found <= 3
    told = capsys.readouterr().out
    assert "than in its first accepted baseline, since 2026-08-09" in told
    assert f"--accept-worse '{FIGURE}' --because" in told
    # It is told each time.
    assert week(found + 1, 1.015**found) == 1
    assert reference(path).upper == bounds[-1]
    check, gate, codes = judged(path, 1.015**found)
    assert (check, gate) == (1, 1)
    # Found against the reference already, or only against the first one.
    assert codes & {"change.crept", "change.slower-than-before"}
    # Who mended it hears no more of it.
    assert judged(path, 1.0)[:2] == (0, 0)
    week(found + 2, 1.0)
    assert run("--runs", "5") == 0
    assert judged(path, 1.0)[:2] == (0, 0)


def test_slower_state_accepted_with_a_reason_is_the_new_anchor(references, capsys):
    path = references / "local.yaml"
    assert week(0, 1.0) == 0
    assert "$anchors" not in path.read_text()
    assert week(1, 1.08) == 1
    assert week(2, 1.08) == 1
    assert run("--accept-worse", "PingPong*", "--because", "new firmware", "--runs", "10") == 0
    text = path.read_text()
    assert "$anchors" not in text
    assert "new firmware" in text
    assert judged(path, 1.08)[:2] == (0, 0)
    capsys.readouterr()
    assert run("--runs", "10") == 0


def test_what_was_accepted_as_better_is_the_new_anchor(references):
    path = references / "local.yaml"
    assert week(0, 1.0) == 0
    assert week(1, 0.9) == 0
    # A little better by itself moves nothing.
    assert median(reference(path).anchor.baseline) == pytest.approx(1.0, rel=0.01)
    assert run("--accept-better", "PingPong*", "--runs", "5") == 0
    assert reference(path).anchor is None
    week(2, 0.92)
    assert run("--runs", "10") == 0
    assert min(reference(path).anchor.baseline.days) == "2026-08-16"


def test_scattering_machine_keeps_its_anchor(references):
    path = references / "local.yaml"
    for number in range(6):
        assert week(number, 1.0 + (-1) ** number * 0.01) == 0
    anchor = reference(path).anchor
    # A row for the figure, with the weeks between the first and the newest.
    assert len(anchor.baseline.runs) == 5
    assert [day for day, _ in anchor.later] == [
        "2026-08-20",
        "2026-08-27",
        "2026-09-03",
        "2026-09-10",
    ]
    before = path.read_text()
    assert run() == 0
    assert path.read_text() == before
    assert judged(path, 1.01)[:2] == (0, 0)


def test_an_anchor_of_no_reference_is_refused(taken, capsys):
    anchor = "{usual: 1.0, bound: 1.1, spread_percent: 1.0, days: 5, since: 2026-11-01}"
    where = "/".join(KEYS)
    taken.write_text(taken.read_text() + f"$anchors:\n  {where}:\n    PingPong.lost: {anchor}\n")
    assert run() == 1
    assert "it covers no reference" in capsys.readouterr().err


def test_too_few_runs_write_nothing(references, capsys):
    for number in range(3):
        write_run(number, 1.0)
    assert run() == 1
    assert list(references.iterdir()) == []
    told = capsys.readouterr().out
    assert f"{FIGURE}: 3 runs of build b1 on n1, and a baseline needs 5; run " in told
    assert "was not written" in told


def test_runs_of_one_hour_are_refused_unless_asked_for(references, capsys):
    for number, value in enumerate(STEADY):
        write_run(number, value, hours=0.1)
    assert run() == 1
    assert "8 runs span 0.7 h, and a baseline needs 1.0 h" in capsys.readouterr().out
    assert run("--min-hours", "0.5") == 0
    assert "best of 8 runs over 0.7 h" in reference(references / "local.yaml").origin


def test_only_what_is_named_is_taken(references, capsys):
    for number, value in enumerate(STEADY):
        write_run(number, value)
        write_run(number, value, stack="openmpi", name="openmpi")
        write_run(number, value, partition="other:node", name="other")
        write_run(number, value, conditions={**CONDITIONS, "settings": "time=1.0"}, name="changed")
        write_run(
            number, value, conditions={**CONDITIONS, "mode": "maintenance"}, name="maintenance"
        )
    assert run("--stack", "open*", "--check", "Imb*", "--mode", "smoke") == 0
    paths = load_references(references / "local.yaml", every_check()).paths()
    assert paths == [("ImbMpi1Check", "local:node", "openmpi", "2-ranks-packed", "smoke", FIGURE)]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--stack", "mvapich"], "no stored run has a figure of this selection"),
        (["--since", "2027-01-01"], "no stored run has a figure of this selection"),
        (["--since", "yesterday"], "'yesterday' is no date, time or run"),
        (["--runs", "3"], "--runs 3: a baseline needs at least 5 runs"),
        (["--min-runs", "4"], "--min-runs 4: fewer than 5 runs do not show"),
        (["--min-hours", "-1"], "--min-hours -1: must be between"),
        (["--min-hours", "nan"], "--min-hours nan: must be between"),
    ],
)
def test_what_cannot_be_asked_for_is_one_sentence(taken, capsys, options, told):
    assert run(*options) == 1
    line = capsys.readouterr().err.splitlines()[-1]
    assert told in line


def test_a_damaged_reference_file_is_not_touched(taken, capsys):
    taken.write_text("HplCheck: {}\n")
    assert run() == 1
    assert "'$provenance' is a required property" in capsys.readouterr().err
    assert taken.read_text() == "HplCheck: {}\n"


def test_a_full_disk_leaves_the_file_that_was_there(taken, capsys, monkeypatch):
    before = taken.read_text()
    for number, value in enumerate(STEADY, 8):
        write_run(number, 0.9 * value)

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    assert run("--runs", "8") == 2
    assert "No space left on device" in capsys.readouterr().err
    assert taken.read_text() == before
    assert [entry.name for entry in taken.parent.iterdir()] == ["local.yaml"]


def test_what_changed_on_the_node_meanwhile_is_told(references, capsys):
    for number, value in enumerate(STEADY):
        run_id = write_run(number, value)
        state = to_record({"kernel": {"release": "6.1" if number < 4 else "6.2"}})
        store.write_json(store.run_folder(run_id) / "machine.json", state)
    run()
    told = capsys.readouterr().out
    assert "since the run 20261101T080000Z-0: kernel release 6.1 -> 6.2" in told


def test_the_help_tells_the_defaults_of_the_rule():
    told = inspect.getsource(baseline.add_options)
    usual = Rule()
    assert f"(default: {usual.most_runs})" in told
    assert f"(default and minimum: {usual.fewest_runs})" in told
    assert f"(default: {usual.shortest / datetime.timedelta(hours=1):g})" in told


# -------------------------------------------------------------------------------------- history


def test_history_says_since_when(references, capsys):
    for number in range(30):
        write_run(number, STEADY[number % 8] * (1.2 if number >= 18 else 1.0))
    assert main(["history"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("\nclustergate history   local   30 runs, 1 November 2026 to ")
    assert " ✗ SLOWER: mpich: PingPong.2p.8B.latency_us 20." in told
    assert " %), since 2 November 2026 20:00 UTC\n" in told
    assert main(["history", "--all"]) == 0
    told = capsys.readouterr().out
    assert "ImbMpi1Check with mpich (local:node, 2-ranks-packed, smoke): since the run of " in told
    assert "% slower (99 % interval: " in told


def write_numbered(number, started, value):
    """Store a run as the suite names it since it numbers them."""
    run_id = write_run(0, value)
    name = f"{started:%Y%m%dT%H%M%SZ}-r{number}"
    store.run_folder(run_id).rename(store.run_folder(name))
    return name


def test_a_run_that_is_dated_next_year_does_not_blind_history(references, capsys):
    """All runs after it were one session with it, so that nothing was ever seen to change."""
    days = [START + datetime.timedelta(days=number) for number in range(24)]
    for number, (day, value) in enumerate(zip(days, STEADY * 3, strict=True), 1):
        write_numbered(number, day, value * (1.0 if number < 13 else 1.27))
    capsys.readouterr()
    wrong = store.run_folder(f"{days[5]:%Y%m%dT%H%M%SZ}-r6")
    wrong = wrong.rename(wrong.with_name("20270301T080000Z-r6"))
    assert main(["history", "--figure", "PingPong*"]) == 0
    told = capsys.readouterr()
    assert "since the run of 13 November 2026" in told.out
    assert f"{wrong.name} is dated " in told.err


def test_five_runs_of_eight_minutes_are_no_baseline_of_years(references, capsys):
    """One of them was made before the node's clock was set."""
    names = [
        write_numbered(number, START + datetime.timedelta(minutes=2 * number), value)
        for number, value in enumerate(STEADY[:5], 1)
    ]
    wrong = store.run_folder(names[0])
    wrong.rename(wrong.with_name("20150101T080000Z-r1"))
    assert run() == 1
    told = capsys.readouterr()
    assert not (references / "local.yaml").exists()
    assert "20150101T080000Z-r1 is dated before the suite was made" in told.err
    assert "4 runs of build b1 on n1, and a baseline needs 5" in told.out


def test_history_of_one_system_leaves_out_what_was_measured_once(references, capsys):
    for number in range(6):
        write_run(number, STEADY[number])
    write_run(6, STEADY[6], stack="openmpi", name="openmpi")
    assert main(["history", "--site", "local"]) == 0
    told = capsys.readouterr().out
    assert re.search(r"^PingPong.*   mpich ", told, re.MULTILINE)
    assert "openmpi" not in told
    assert "1 trend of a single run left out (--all)" in told
    assert main(["history", "--site", "local", "--all"]) == 0
    assert re.search(r"^PingPong.*   openmpi ", capsys.readouterr().out, re.MULTILINE)
    assert main(["history", "--site", "westmere-m610-qdr"]) == 1
    assert "no stored run has a figure of this selection" in capsys.readouterr().err


@pytest.mark.parametrize(("since", "has"), [("last", 1), ("previous", 2), ("r3", 3)])
def test_history_since_a_run_names_it_as_other_commands_do(since, has, references, capsys):
    for number in range(6):
        write_run(number, STEADY[number])
    assert main(["history", "--all", "--since", since, "--json"]) == 0
    trend = json.loads(capsys.readouterr().out)
    assert len(trend["runs"]) == has


def test_history_as_json_is_an_object_per_trend(references, capsys):
    for number in range(6):
        write_run(number, STEADY[number])
        write_run(number, STEADY[number], stack="openmpi", name="openmpi")
    assert main(["history", "--json", "--figure", "PingPong.*", "--stack", "mpich"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    record = json.loads(line)
    assert record["stack"] == "mpich"
    assert [entry["value"] for entry in record["runs"]] == list(STEADY[:6])


def test_no_history_is_one_sentence(references, capsys):
    assert main(["history"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(" yet; measure first: `clustergate check`")
