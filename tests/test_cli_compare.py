from __future__ import annotations

import csv
import dataclasses
import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clustergate import cli
from clustergate.core import store
from clustergate.core.model import (
    CaseRecord,
    Launch,
    NodeFacts,
    Sample,
)
from clustergate.core.reasons import in_words
from clustergate.report import console
from clustergate.sites import configs
from tests import builders
from tests.builders import ping


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    monkeypatch.setattr(cli, "COMMANDS", ("compare",))
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path / "home"))

    def call(*arguments: object) -> tuple[int, str, str]:
        status = cli.main(["compare", *map(str, arguments)])
        return status, *capsys.readouterr()

    return call


FILES = (
    "files state neither day nor node, so the largest usual variation of machines is assumed; "
    "`clustergate ab` alternates launches of both, and finds 10 %"
)


def write(path: Path, factor: float = 1.0, sizes: tuple[int, ...] = (8, 64)) -> Path:
    rng = np.random.default_rng(int(1000 * factor))
    rows = [
        f"latency_us,{size},{factor * size * value:.6f}"
        for value in np.exp(0.02 * rng.normal(size=20))
        for size in sizes
    ]
    path.write_text("\n".join(["metric,bytes,value", *rows, ""]))
    return path


def test_an_object_per_metric_and_conditions(run: Any, tmp_path: Path) -> None:
    a = write(tmp_path / "a.csv")
    b = write(tmp_path / "b.csv", 5.0, sizes=(8, 512))
    status, out, err = run(a, b, "--json")
    records = {line["conditions"]["bytes"]: line for line in map(json.loads, out.splitlines())}
    assert (status, list(records)) == (0, ["8", "64", "512"])
    assert err == f"{FILES}\n"
    assert records["8"]["verdict"] == "A better"
    assert records["8"]["low"] < 5.0 < records["8"]["high"]
    assert (records["8"]["samples_a"], records["8"]["samples_b"]) == (20, 20)
    for size, remark in (("64", "measured in A only"), ("512", "measured in B only")):
        assert (records[size]["verdict"], records[size]["remark"]) == ("inconclusive", remark)


def test_what_keeps_all_of_two_files_apart_is_told(run: Any, tmp_path: Path) -> None:
    """Of two files of two nodes it was only said that all was inconclusive."""
    a, b = write(tmp_path / "a.csv"), write(tmp_path / "b.csv", 1.3)
    assert "nothing was compared" not in run(a, b)[1]
    for path in (a, b):
        head, *rows = path.read_text().splitlines()
        path.write_text("\n".join([f"{head},host", *(f"{row},{path.stem}1" for row in rows), ""]))
    told = " ".join(run(a, b)[1].split())
    assert "nothing was compared" in told
    assert "A and B differ in host (a1 and b1); --ignore COLUMN" in told
    assert "nothing was compared" not in run(a, b, "--ignore", "host")[1]


def copy_of(path: Path) -> Path:
    """Return another file that holds the same, as no file is compared with itself."""
    return Path(shutil.copy(path, path.with_name(f"copy-of-{path.name}")))


def test_files_are_of_two_hours_that_nobody_knows(run: Any, tmp_path: Path) -> None:
    """Launches of another hour were called better for 20 %, and the same for 5."""
    a = write(tmp_path / "a.csv")
    for b in (copy_of(a), write(tmp_path / "b.csv", 1.2)):
        status, out, _ = run(a, b, "--csv")
        table = list(csv.DictReader(io.StringIO(out)))
        assert status == 0
        assert [row["verdict"] for row in table] == ["inconclusive"] * 2
        assert [row["bytes"] for row in table] == ["8", "64"]
        assert all(float(row["low"]) < 1 / 1.3 and float(row["high"]) > 1.3 for row in table)
        assert FILES in " ".join(run(a, b)[1].split())


def test_the_table_states_the_margin(run: Any, tmp_path: Path) -> None:
    status, out, _ = run(write(tmp_path / "a.csv"), write(tmp_path / "b.csv", 0.2), "--margin", 3)
    assert status == 0
    assert "2 B better" in out
    assert "within 3 %" in out
    status, _, err = run(tmp_path / "a.csv", tmp_path / "b.csv", "--margin", "100")
    assert (status, "--margin 100: must be between 0 and 100 %" in err) == (1, True)


def test_the_direction_of_an_unknown_metric_must_be_said(run: Any, tmp_path: Path) -> None:
    a, b = write(tmp_path / "a.csv"), write(tmp_path / "b.csv", 9.0)
    for path in (a, b):
        path.write_text(path.read_text().replace("latency_us", "answers_per_s"))
    assert run(a, b)[0] == 1
    assert "say --better" in run(a, b)[2]
    assert "2 B better" in run(a, b, "--better", "higher")[1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("metric,value\nlatency_us,1\nlatency_us,nan\n", ":3: the value 'nan' is not a number"),
        ("metric,value\nlatency_us,1\n\nlatency_us,fast\n", ":4: the value 'fast' is not a number"),
        ("metric,value\nlatency_us,\n", ":2: the value '' is not a number"),
        ("metric,value\n,1\n", ":2: no metric"),
        ("metric,bytes\nlatency_us,1\n", ":1: there is no column 'value'"),
        ("metric,value\n", ":1: there are no samples"),
        ("", ": this is not a CSV table"),
        ("metric,value\nlatency_us,1,2\n", ": this is not a CSV table"),
        ("metric;value\nlatency_us;1,2\n", ":1: the separator must be a comma"),
    ],
)
def test_bad_input_is_one_sentence(run: Any, tmp_path: Path, text: str, said: str) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text(text)
    status, out, err = run(write(tmp_path / "a.csv"), bad)
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert err.startswith(f"clustergate: {bad}{said}")


def test_rows_that_were_pasted_twice_are_no_further_launches(run: Any, tmp_path: Path) -> None:
    """Twenty launches counted as forty, and the interval was narrower by a third."""
    a, twice = write(tmp_path / "a.csv"), write(tmp_path / "twice.csv")
    head, *rows = twice.read_text().splitlines()
    for pasted in (rows, rows[-10:]):
        twice.write_text("\n".join([head, *rows, *pasted, ""]))
        status, out, err = run(a, twice)
        assert (status, out) == (1, "")
        assert f"{twice}:42: from here on {len(pasted)} rows stand in the file before" in err
    # Within the file they did.
    others = [line.replace("latency_us", "bandwidth_mb_s") for line in rows[::-1]]
    twice.write_text("\n".join([head, *rows, *rows[20:34], *others, ""]))
    status, out, err = run(a, twice)
    assert (status, out) == (1, "")
    assert f"{twice}:42: from here on 14 rows stand in the file before" in err
    # What tells them apart is no copy, whether it is ignored or not.
    numbered = [f"{row},{k}" for k, row in enumerate([*rows, *rows])]
    twice.write_text("\n".join([f"{head},at", *numbered, ""]))
    assert run(twice, copy_of(twice), "--ignore", "at")[0] == 0


def test_nothing_is_compared_with_itself_in_silence(run: Any, tmp_path: Path) -> None:
    """All figures were equivalent."""
    a = write(tmp_path / "a.csv")
    copied = copy_of(a)
    (tmp_path / "link.csv").symlink_to(a)
    for b in (a, tmp_path / "link.csv"):
        status, out, err = run(a, b)
        assert (status, out) == (1, "")
        assert err.startswith(f"clustergate: A and B are both {a}: ")
    assert "A and B hold the same values in the same order" in run(a, copied)[1]
    assert "the same values" in run(a, copied, "--json")[2]
    assert "the same values" not in run(a, write(tmp_path / "b.csv", 1.1))[1]


@pytest.mark.parametrize("values", [[7.0] * 40, [0.14, 0.14, 0.15] * 3, [0.14] * 40 + [0.15]])
def test_values_that_are_equal_by_their_digits_are_launches(
    run: Any, tmp_path: Path, values: list[float]
) -> None:
    a = tmp_path / "a.csv"
    a.write_text("metric,value\n" + "".join(f"latency_us,{value}\n" for value in values))
    assert run(a, copy_of(a))[0] == 0


def test_a_column_that_differs_in_every_row_is_named(run: Any, tmp_path: Path) -> None:
    a = tmp_path / "a.csv"
    rows = [f"latency_us,{k},{8 * (1 + k % 2)},7\n" for k in range(12)]
    a.write_text("metric,time,bytes,value\n" + "".join(rows))
    hint = "column 'time' differs in every row: if it is no condition, leave it out with --ignore "
    assert f"{hint}time" in " ".join(run(a, copy_of(a))[1].split())
    assert run(a, copy_of(a), "--json")[2] == f"{hint}time\n{FILES}\n"
    assert "differs in every row" not in run(a, copy_of(a), "--ignore", "time")[1]


def test_columns_can_be_ignored(run: Any, tmp_path: Path) -> None:
    a = tmp_path / "a.csv"
    a.write_text("metric,at,value\n" + "".join(f"latency_us,{k},7\n" for k in range(10)))
    out = run(a, copy_of(a), "--ignore", "at", "--json")[1]
    assert [json.loads(line)["samples_a"] for line in out.splitlines()] == [10]


def store_case(name: str, check: str, stack: str, samples: list[Sample], **more: Any) -> None:
    of = {"name": f"{name}-{stack}", "check": check, "stack": stack, "conditions": {"ranks": 2}}
    run_id = more.pop("run_id", "20260101T000000Z-1")
    store.write_case(run_id, builders.record(*samples, partition="local:x", **of, **more))


def stored(stack: str, values: list[float], disturbed: range, size: int = 8, **more: Any) -> None:
    """Store launches of a stack with these values, some of them disturbed."""
    samples = [ping(value, size, k) for k, value in enumerate(values)]
    launches = [
        Launch(k, 0.0, 1.0, disturbed=in_words("busy") if k in disturbed else None)
        for k in range(len(values))
    ]
    store_case(f"c{size}", "ImbCheck", stack, samples, launches=launches, **more)


def compared(run: Any) -> dict[str, Any]:
    status, out, err = run("last:one", "last:two", "--json")
    assert (status, err) == (0, "")
    record: dict[str, Any] = json.loads(out)
    return record


def noise(factor: float, seed: int = 1) -> list[float]:
    return list(factor * np.exp(0.02 * np.random.default_rng(seed).normal(size=20)))


def test_stacks_of_a_run_compared_by_undisturbed_launches(run: Any) -> None:
    stored("one", [*noise(1.0), 99.0], range(20, 21))
    stored("two", [*noise(1.3, 2), 99.0], range(20, 21))
    record = compared(run)
    assert (record["verdict"], record["samples_a"], record["samples_b"]) == ("A better", 20, 20)
    assert record["conditions"]["benchmark"] == "PingPong"


def on_exclusive_nodes(monkeypatch: pytest.MonkeyPatch, partition: str = "local:x") -> None:
    monkeypatch.setattr(configs, "nodes_of", lambda _: {partition: NodeFacts(exclusive=True)})


@pytest.mark.parametrize(
    ("factor", "exclusive", "verdict"),
    [(1.3, True, "A better"), (0.7, True, "B better"), (1.05, True, "inconclusive"),
     (2.9, True, "A better"), (1.3, False, "inconclusive"), (2.9, False, "inconclusive")],
)  # fmt: skip
def test_two_runs_judged_on_exclusive_nodes_alone(
    run: Any, monkeypatch: pytest.MonkeyPatch, factor: float, exclusive: bool, verdict: str
) -> None:
    """A factor of two between hours was taken for usual, on whatever machine."""
    if exclusive:
        on_exclusive_nodes(monkeypatch)
    stored("one", noise(1.0), range(0))
    stored("one", noise(factor, 2), range(0), run_id="20260102T000000Z-1")
    status, out, _ = run("previous:one", "last:one", "--json")
    told = json.loads(out)
    assert (status, told["verdict"]) == (0, verdict)
    assert ("do not show variation between days" in told["remark"]) is not exclusive
    assert (told["low"] is None) is not exclusive
    assert ("usually within" in run("previous:one", "last:one")[1]) is (verdict[2:] == "better")


def test_a_stack_that_is_slower_in_one_of_two_runs_is_named(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_exclusive_nodes(monkeypatch)
    for seed, (stack, day, factor) in enumerate(
        (stack, day, 1.3 if (stack, day) == ("two", 2) else 1.0)
        for stack in ("one", "two")
        for day in (1, 2)
    ):
        for size in (8, 64, 512, 4096):
            values = noise(size * factor, 10 * seed + size)
            stored(stack, values, range(0), size, run_id=f"2026010{day}T000000Z-1")
    status, out, err = run("previous", "last")
    assert (status, err) == (0, "")
    assert "B is 3" in out
    records = [json.loads(line) for line in run("previous", "last", "--json")[1].splitlines()]
    slower = [one for one in records if one["verdict"] == "A better"]
    assert {one["conditions"]["stack"] for one in slower} == {"two"}
    assert not any(one["verdict"] == "B better" for one in records)


@pytest.mark.parametrize(
    ("distances", "verdict"),
    [
        (("same switch", "same switch"), "A better"),
        (("same switch", "another group"), "inconclusive"),
        ((None, None), "inconclusive"),
    ],
)
def test_small_messages_judged_between_equally_distant_nodes(
    run: Any, monkeypatch: pytest.MonkeyPatch, distances: tuple[str, ...], verdict: str
) -> None:
    on_exclusive_nodes(monkeypatch)
    for day, (factor, distance) in enumerate(zip((1.0, 1.3), distances, strict=True), 1):
        run_id = f"2026010{day}T000000Z-1"
        stored("one", noise(factor, day), range(0), run_id=run_id)
        (record,) = store.read_cases(run_id)
        conditions, details = {**record.conditions, "nodes": 2}, {"distance": distance}
        placed = dataclasses.replace(record, conditions=conditions, details=details)
        store.write_case(run_id, placed)
    told = json.loads(run("previous", "last", "--json")[1])
    assert told["verdict"] == verdict
    assert ("to be as far from each other" in told["remark"]) is (verdict == "inconclusive")


def test_runs_of_other_nodes_are_said_to_be(run: Any) -> None:
    for day, host in ((1, "n1"), (2, "n2")):
        run_id = f"2026010{day}T000000Z-1"
        stored("one", noise(1.0, day), range(0), run_id=run_id)
        (record,) = store.read_cases(run_id)
        details = {"proof": {"hosts": [host]}}
        store.write_case(run_id, dataclasses.replace(record, details=details))
    said = "A ran on n1, and B on n2: the difference may be the nodes'"
    assert said in " ".join(run("previous", "last")[1].split())
    assert said in run("previous", "last", "--json")[2]


def test_suspicion_in_one_of_two_runs_told_as_not_confirmed(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_exclusive_nodes(monkeypatch)
    stored("one", noise(1.0), range(0))
    stored("one", noise(1.09, 2), range(0), run_id="20260102T000000Z-1")
    told = json.loads(run("previous", "last", "--json")[1])
    assert told["verdict"] == "inconclusive"
    assert "B may be" in told["remark"]
    assert "not confirmed" in run("previous", "last")[1]


def test_mostly_slow_launches_told_though_the_best_is_not(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_exclusive_nodes(monkeypatch)
    stored("one", noise(1.0), range(0))
    slow = [*noise(1.0)[:8], *noise(4.0)[:12]]
    stored("one", slow, range(0), run_id="20260102T000000Z-1")
    told = json.loads(run("previous:one", "last:one", "--json")[1])
    assert told["verdict"] == "inconclusive"
    assert told["remark"].startswith("most launches of B take more than twice as long")
    assert told["ratio"] > 2


def test_the_previous_run_is_one_of_the_command_that_made_the_last(run: Any) -> None:
    """A comparison that somebody made since stood for the run before the maintenance."""
    for day, kind in ((1, "check"), (2, "ab"), (3, "check")):
        run_id = f"2026010{day}T000000Z-1"
        stored("one", noise(1.0 + day), range(0), run_id=run_id)
        store.write_json(store.run_folder(run_id) / "made.json", {"kind": kind})
    status, out, _ = run("previous", "last")
    assert status == 0
    assert "A: 20260101T000000Z-1; B: 20260103T000000Z-1" in out
    store.write_json(store.run_folder("20260103T000000Z-1") / "made.json", {"kind": "gate"})
    status, out, err = run("previous:one", "last:one")
    assert (status, out) == (1, "")
    assert "no run before 20260103T000000Z-1 was made by `clustergate gate`" in err


@pytest.mark.parametrize(
    ("methods", "compares"),
    [(("x", "x"), True), (("", "x"), True), (("x-8-blocks", "x-8-blocks"), True),
     (("x", "x-8-blocks"), False)],
)  # fmt: skip
def test_figures_that_were_computed_in_two_ways_are_not_compared(
    run: Any, methods: tuple[str, str], compares: bool
) -> None:
    """The mean of a launch and the bounded mean of its blocks are two statistics."""
    for day, method in enumerate(methods, 1):
        run_id = f"2026010{day}T000000Z-1"
        stored("one", noise(1.0), range(0), run_id=run_id)
        (record,) = store.read_cases(run_id)
        store.write_case(run_id, dataclasses.replace(record, details={"method": method}))
    status, out, err = run("previous", "last", "--json")
    records = [json.loads(line) for line in out.splitlines()]
    assert status == 0
    assert [one["ratio"] is not None for one in records] == ([True] if compares else [False] * 2)
    said = run("previous", "last")[1]
    for text in (err, said):
        assert ("ImbCheck one local:x: not compared" in text) is not compares
    assert "nothing was compared" not in said


def test_figures_in_one_block_compared_with_those_without_blocks(run: Any) -> None:
    """All of an A/B's were refused because of its short messages."""
    for day, blocks in ((1, {}), (2, {"8": 8})):
        run_id = f"2026010{day}T000000Z-1"
        for size in (8, 1 << 20):
            stored("one", noise(1.0), range(0), size, run_id=run_id)
        short, long = sorted(store.read_cases(run_id), key=lambda one: len(one.name))
        both, details = (*short.samples, *long.samples), {"method": "x", "blocks": blocks}
        store.case_file(run_id, long.name).unlink()
        store.write_case(run_id, dataclasses.replace(short, samples=both, details=details))
    _, out, err = run("previous", "last", "--json")
    compared = [one for line in out.splitlines() if (one := json.loads(line))["ratio"] is not None]
    assert [one["conditions"]["bytes"] for one in compared] == [str(1 << 20)]
    assert err.startswith("1 of 2 figures of ImbCheck one local:x: not compared, as ")


def test_leaving_slow_launches_out_makes_nobody_better(run: Any) -> None:
    factor, without = 0.7, "B better"
    stored("one", noise(1.0), range(0))
    stored("two", [*noise(factor, 2), *noise(3.0, 3), *noise(3.0, 5)], range(20, 60))
    record = compared(run)
    assert record["verdict"] == "inconclusive"
    assert record["remark"].startswith(
        f"{without} without the 40 disturbed launches, but with them B/A is "
    )
    # Disturbed as often, both are spared.
    stored("one", [*noise(1.0), *noise(3.0, 4), *noise(3.0, 6)], range(20, 60))
    assert compared(run)["verdict"] == without


def test_disturbed_launches_not_called_unmeasured(run: Any) -> None:
    for size, disturbed in ((8, range(20)), (64, range(0))):
        stored("one", noise(1.0), disturbed, size)
        stored("two", noise(1.0), range(0), size)
    status, out, _ = run("last:one", "last:two", "--json")
    records = {line["conditions"]["bytes"]: line for line in map(json.loads, out.splitlines())}
    assert (status, records["64"]["samples_b"]) == (0, 20)
    assert records["8"]["remark"] == "all 20 launches of A were disturbed"
    stored("one", noise(1.0), range(20), 64)
    told = (
        "the run 20260101T000000Z-1 holds no figures of one to compare: every launch was disturbed"
    )
    assert told in run("last:one", "last:two")[2]


@pytest.mark.parametrize(
    ("name", "complaints", "why"),
    [
        ("last:two", (), "figures of two to compare: it holds ScreenCheck with one; name another"),
        ("last", (), "holds no figures to compare: it holds ScreenCheck with one; name another"),
        ("last:one", ("rank 0 of 1",), "holds no figures of one to compare: rank 0 of 1"),
    ],
)
def test_a_run_without_figures_is_told_with_what_it_holds(
    run: Any, name: str, complaints: tuple[str, ...], why: str
) -> None:
    """The last one may be a screening."""
    record = CaseRecord(
        "s", "ScreenCheck", "one", "local:x", {}, complaints=[*map(in_words, complaints)]
    )
    for run_id in ("20260101T000000Z-0", "20260101T000000Z-1"):
        store.write_case(run_id, record)
    status, out, err = run(name, "previous")
    assert (status, out) == (1, "")
    assert why in err


def test_what_differs_is_a_table_and_the_rest_a_line(run: Any) -> None:
    for stack, factor in (("one", 1.0), ("two", 1.3)):
        stored(stack, noise(factor, int(10 * factor)), range(0), 8)
        stored(stack, noise(1.0), range(0), 64)
        stored(stack, noise(1.0), range(20), 512)
    status, out, _ = run("last:one", "last:two")
    lines = out.splitlines()
    assert status == 0
    assert sorted(lines[0].split(", ")) == ["1 A better", "2 inconclusive"]
    assert [line.split()[0] for line in lines if line.startswith("PingPong.2p.8B.latency_us ")] == [
        "PingPong.2p.8B.latency_us"
    ]
    (rest,) = [line for line in lines if line.startswith("ImbCheck local:x: ")]
    assert "2 inconclusive" in rest
    assert rest.endswith(" (--all); of 1: all 20 launches of A were disturbed")
    everything = run("last:one", "last:two", "--all")[1].splitlines()
    assert sum(line.startswith("PingPong") and ":" not in line for line in everything) == 3
    assert not any("(--all)" in line for line in everything)


def test_a_run_of_many_conditions_fits_a_terminal(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HPL has twenty conditions that IMB has not, and a column for each leaves room for none."""
    monkeypatch.setattr(console, "width", lambda: 80)
    of_hpl: dict[str, Any] = {"n": 6336, "nb": 192, "variant": "WR11R2C4", "bcast": "1ringM"}
    of_hpl |= {
        "rfact": "Right",
        "depth": 1,
        "ndiv": 2,
        "nbmin": 4,
        "pfact": "Crout",
    }
    for stack in ("one", "two"):
        stored(stack, noise(1.0), range(20), 64)
        stored(stack, noise(1.0), range(0), 8)
        grids = [
            dataclasses.replace(builders.hpl(97.0), conditions={**of_hpl, **grid})
            for grid in ({"p": 1, "q": 2}, {"p": 2, "q": 1})
        ]
        store_case("h", "HpccCheck", stack, grids)
    status, out, _ = run("last:one", "20260101T000000Z-1:two", "--all")
    lines = out.splitlines()
    assert status == 0
    assert {"HpccCheck local:x", "ImbCheck local:x"} < set(lines)
    assert any(x.startswith("PingPong.2p.8B.latency_us ") and "equivalent" in x for x in lines)
    assert any(x.startswith("HPL.performance_gflops p=1 ") for x in lines)
    assert "all 20 launches of A were disturbed: PingPong.2p.64B.latency_us" in lines


@pytest.mark.parametrize("name", ["nothing", "previous", ".."])
def test_what_is_not_there_is_one_sentence(run: Any, tmp_path: Path, name: str) -> None:
    status, out, err = run(write(tmp_path / "a.csv"), name)
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert "runs" in err


def of_imb(stack: str, values: dict[str, list[float]], sizes: tuple[int, ...] = (8,)) -> None:
    """Store launches of Allreduce with these metrics."""
    samples = [
        ping(value, size, order, "Allreduce", metric)
        for metric, launches in values.items()
        for size in sizes
        for order, value in enumerate(launches)
    ]
    store_case("i", "ImbCheck", stack, samples)


@pytest.mark.parametrize(
    ("of_b", "compared_by"),
    [
        (("t_avg_us", "t_max_us"), {"t_max_us": "A better"}),
        # Runs of earlier versions did not keep the slowest rank.
        (("t_avg_us",), {"t_avg_us": "A better", "t_max_us": "inconclusive"}),
    ],
)
def test_one_measurement_of_stored_runs_is_compared_once(
    run: Any, of_b: tuple[str, ...], compared_by: dict[str, str]
) -> None:
    of_imb("one", dict.fromkeys(("t_avg_us", "t_max_us"), noise(1.0)))
    of_imb("two", dict.fromkeys(of_b, noise(1.3, 2)))
    records = map(json.loads, run("last:one", "last:two", "--json")[1].splitlines())
    assert {one["metric"]: one["verdict"] for one in records} == compared_by


def test_the_table_names_the_coverage_of_its_intervals(run: Any, tmp_path: Path) -> None:
    a, b = write(tmp_path / "a.csv"), write(tmp_path / "b.csv", 5.0)
    held = [json.loads(line) for line in run(a, b, "--json")[1].splitlines()]
    out = run(a, b)[1]
    assert "covers" in out
    assert all(f"{100 * one['confidence']:.4g} %" in out for one in held)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_whatever_parse_writes_compare_reads(
    kind: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    text = (Path(__file__).parent / "data" / "hpl" / "hpl-2.3-mpich-grids.txt").read_text()
    files = []
    for date, seconds in (("a", ()), ("b", (("0.07 ", "0.08 "), ("7.4059e+01", "6.6800e+01")))):
        for old, new in seconds:
            text = text.replace(old, new)
        output = tmp_path / f"{date}.out"
        output.write_text(text)
        assert cli.main(["parse", "--format", kind, str(output)]) == 0
        files.append(tmp_path / f"{date}.{kind}")
        files[-1].write_bytes(capfdbinary.readouterr().out)
    assert cli.main(["compare", "--all", "--json", *map(str, files)]) == 0
    records = [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    metrics = {record["metric"] for record in records}
    # A residual is neither better nor worse.
    assert metrics
    assert metrics <= {"performance_gflops", "time_s"}
    assert {record["conditions"]["n"] for record in records} == {"1000", "2000"}
    assert not any({"file", "line"} & record["conditions"].keys() for record in records)
