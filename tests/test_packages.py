"""A run as one file: what is in it, and what of a file that somebody sent is refused."""

import datetime
import io
import json
import stat
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from clustergate.cli import main
from clustergate.core import store
from clustergate.judge.history import packages
from clustergate.judge.history.listing import ENDED, SUMMARY, VERDICTS
from tests.builders import built, hpl, launches, record

RUN = "20261101T080000Z-r1"
VERDICT = {
    "run": RUN, "system": "alpha", "mode": "smoke", "started": "2026-11-01T08:00:00+00:00",
    "cases": [{
        "check": "HplCheck", "stack": "mpich", "partition": "alpha:node", "parameters": {},
        "state": "ran", "reasons": [], "groups": [],
        "figures": [{"name": "HPL <b>", "value": 90.0, "unit": "Gflop/s", "verdict": "pass",
                     "reasons": [], "doubt": None}],
    }],
}  # fmt: skip


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path / "home"))
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    for day, base in ((1, 90.0), (2, 80.0)):
        run = f"2026110{day}T080000Z-r{day}"
        samples = [hpl(base + k / 10, order=k) for k in range(5)]
        kept = record(*samples, launches=launches(5), details=built(), launches_needed=3)
        store.write_case(run, kept)
        folder = store.run_folder(run)
        store.write_json(folder / "asked.json", {"mode": "smoke", "site": "alpha.py"})
        store.write_json(folder / ENDED, {"verdict": "pass", "system": "alpha"})
        store.write_json(folder / VERDICTS, VERDICT)
        store.write_text(folder / SUMMARY, "AS BEFORE <script>\n")
        store.write_text(folder / "report.html", "<script>alert(1)</script>")
    return tmp_path


def packed(home: Path, *options: str) -> Path:
    file = home / "results.zip"
    assert main(["pack", RUN, "--output", str(file), *options]) == 0
    return file


def changed(file: Path, **entries: bytes | None) -> Path:
    """Write a package again with other entries, or without those that are None."""
    with zipfile.ZipFile(file) as archive:
        contents: dict[str, bytes | None] = {one: archive.read(one) for one in archive.namelist()}
    contents |= {name.replace("__", "."): content for name, content in entries.items()}
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in contents.items():
            if content is not None:
                archive.writestr(name, content)
    return file


def metadata(file: Path) -> dict[str, Any]:
    with zipfile.ZipFile(file) as archive:
        content: dict[str, Any] = json.loads(archive.read(packages.METADATA))
    return content


def test_it_says_what_is_in_it_and_how_to_cite_it(home):
    file = packed(home, "--author", "Eva O.", "--author", "Jo", "--license", "CC-BY-4.0")
    graph = {one["@id"]: one for one in metadata(file)["@graph"]}
    root = graph["./"]
    assert (root["identifier"], root["license"]["@id"]) == (
        RUN,
        "https://spdx.org/licenses/CC-BY-4.0",
    )
    assert [graph[one["@id"]]["name"] for one in root["author"]] == ["Eva O.", "Jo"]
    with zipfile.ZipFile(file) as archive:
        names = {*archive.namelist()} - {packages.METADATA}
        cited = yaml.safe_load(archive.read(packages.CITATION))
    assert {one["@id"] for one in root["hasPart"]} == names
    assert not [name for name in names if name.endswith(".html")]
    assert cited["authors"] == [{"name": "Eva O."}, {"name": "Jo"}]
    assert cited["identifiers"][0]["value"] == RUN


def test_the_library_of_the_format_reads_it(home):
    crates = pytest.importorskip("rocrate.rocrate")
    crate = crates.ROCrate(packed(home, "--author", "Eva O.", "--license", "CC0-1.0"))
    assert crate.root_dataset["identifier"] == RUN
    assert crate.metadata["conformsTo"].endswith("crate/1.1") or crate.version == "1.1"
    listed = {one.id for one in crate.data_entities}
    assert {f"run/{VERDICTS}", packages.CITATION, packages.SCHEMA} <= listed
    assert crate.root_dataset["license"]["name"] == "CC0-1.0"


def test_it_is_compared_with_a_run_of_this_home(home, capsys):
    file = packed(home)
    assert main(["compare", str(file), "last", "--json"]) == 0
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line[:1] == "{"]
    assert said
    assert main(["compare", RUN, "last", "--json"]) == 0
    of_runs = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line[:1] == "{"]
    assert said == of_runs


def test_it_is_opened_into_the_folder_that_is_named_alone(home, capsys):
    file = packed(home)
    before = set(home.rglob("*"))
    assert main(["open", str(file)]) == 1
    assert "--output FOLDER` writes" in capsys.readouterr().err
    assert set(home.rglob("*")) == before
    folder = home / "looked-at"
    for _ in range(2):
        assert main(["open", str(file), "--output", str(folder)]) == 0
    page = Path(capsys.readouterr().out.split()[-1])
    assert page.parent == folder / RUN
    assert set(home.rglob("*")) - before <= {folder, *folder.rglob("*")}
    text = page.read_text(encoding="utf-8")
    assert "HPL &lt;b&gt;" in text
    assert "AS BEFORE &lt;script&gt;" in text
    assert "alert(1)" not in text
    assert main(["open", "last", "--output", str(folder)]) == 1


def test_it_is_merged_as_the_run_itself_would_be(home, capsys, monkeypatch):
    file, first = packed(home), home / "home"
    monkeypatch.setenv("CLUSTERGATE_HOME", str(home / "second"))
    assert main(["merge", str(file)]) == 0
    assert main(["merge", str(first)]) == 0
    out = capsys.readouterr().out
    assert f"{file}: 1 new, 0 there already" in out
    assert f"{first}: 1 new, 1 there already" in out
    copies = [store.run_folder(RUN, home / name) for name in ("home", "second")]
    times = [(one / VERDICTS).stat().st_mtime for one in copies]
    assert times[0] == pytest.approx(times[1], abs=1e-3)
    assert main(["open", "r1"]) == 0


def test_a_run_that_has_not_ended_and_a_trial_are_not_packed(home, capsys):
    (store.run_folder(RUN) / ENDED).unlink()
    assert main(["pack", RUN, "--output", str(home / "x.zip")]) == 1
    asked = {"mode": "smoke", "site": "alpha.py", "trial": True}
    store.write_json(store.run_folder(RUN) / "asked.json", asked)
    assert main(["pack", RUN, "--output", str(home / "x.zip")]) == 1
    assert "is a trial" in capsys.readouterr().err
    assert not (home / "x.zip").exists()


def test_a_licence_is_one(home, capsys):
    assert main(["pack", RUN, "--output", str(home / "x.zip"), "--license", "mine, all"]) == 1
    assert "CC-BY-4.0" in capsys.readouterr().err


def _unlisted(file: Path) -> Path:
    return changed(file, run_x__json=b"{}")


def _entry(file: Path, name: str, mode: int = 0, content: bytes = b"{}") -> Path:
    with zipfile.ZipFile(file, "a") as archive:
        entry = zipfile.ZipInfo(name)
        entry.external_attr = mode << 16
        archive.writestr(entry, content)
    return file


def _relisted(file: Path, entity: str, **changes: object) -> Path:
    crate = metadata(file)
    for one in crate["@graph"]:
        if one["@id"] == entity:
            one.update(changes)
    return changed(file, **{packages.METADATA.replace(".", "__"): json.dumps(crate).encode()})


def _of_bytes(file: Path, content: bytes) -> Path:
    file.write_bytes(content)
    return file


REFUSED = {
    "traversal": (lambda f: _entry(f, "run/../../outside.json"), "could lead out"),
    "absolute": (lambda f: _entry(f, "/tmp/outside.json"), "could lead out"),
    "backslash": (lambda f: _entry(f, "run/..\\outside.json"), "could lead out"),
    "drive": (lambda f: _entry(f, "C:outside.json"), "could lead out"),
    "link": (lambda f: _entry(f, "run/x.json", stat.S_IFLNK | 0o777), "no plain file"),
    "device": (lambda f: _entry(f, "run/x.json", stat.S_IFCHR | 0o666), "no plain file"),
    "page": (lambda f: _entry(f, "run/report.html"), "none of the data"),
    "hidden": (lambda f: _entry(f, "run/.x.json"), "none of the data"),
    "program": (lambda f: _entry(f, "setup.py"), "no package has"),
    "unlisted": (lambda f: _entry(f, "run/x.json"), "not listed"),
    "missing": (lambda f: changed(f, **{f"run/{VERDICTS}".replace(".", "__"): None}), "missing"),
    "checksum": (
        lambda f: changed(f, **{f"run/{VERDICTS}".replace(".", "__"): b"{}"}),
        "another checksum",
    ),
    "no metadata": (lambda f: changed(f, **{"ro-crate-metadata__json": None}), "has no ro-crate"),
    "metadata": (lambda f: changed(f, **{"ro-crate-metadata__json": b"[1]"}), "damaged"),
    "nested": (
        lambda f: changed(f, **{"ro-crate-metadata__json": b"[" * 100_000}),
        "nested too deeply",
    ),
    "version": (
        lambda f: _relisted(f, packages.METADATA, conformsTo={"@id": "https://x/9"}),
        "conforms to",
    ),
    "name": (lambda f: _relisted(f, "./", identifier="../up"), "names no run"),
    "zone": (
        lambda f: _relisted(f, f"run/{VERDICTS}", dateModified="2026-11-01T08:00:00"),
        "no zone",
    ),
    "cut off": (lambda f: _of_bytes(f, f.read_bytes()[:-3000]), ""),
    "bit": (
        lambda f: _of_bytes(f, (t := f.read_bytes())[:900] + bytes([t[900] ^ 255]) + t[901:]),
        "",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
@pytest.mark.parametrize("command", ["merge", "open", "compare"])
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_what_is_wrong_is_refused_by_a_sentence_and_nothing_is_written(home, capsys, kind, command):
    change, said = REFUSED[kind]
    file = change(packed(home))
    capsys.readouterr()
    before = set(home.rglob("*"))
    more = {"merge": [], "open": ["--output", str(home / "looked-at")], "compare": ["last"]}
    status = main([command, str(file), *more[command]])
    error = capsys.readouterr().err
    assert status == 1
    if said:
        assert said in error
    assert error.count("\n") == 1
    assert set(home.rglob("*")) == before


def test_bombs_are_refused_before_they_are_unpacked(home, capsys, monkeypatch):
    file = packed(home)
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("run/zeros.json", b"0" * 2_000_000)
    monkeypatch.setattr(packages, "MOST_BYTES", 1_000_000)
    read = zipfile.ZipFile.read

    def never(*_):
        raise AssertionError("it was read")

    monkeypatch.setattr(zipfile.ZipFile, "read", never)
    assert main(["merge", str(file)]) == 1
    assert "unpacked it is" in capsys.readouterr().err
    monkeypatch.setattr(packages, "MOST_FILES", 3)
    assert main(["merge", str(file)]) == 1
    assert "files are in it, more than 3" in capsys.readouterr().err
    monkeypatch.setattr(zipfile.ZipFile, "read", read)


def test_an_entry_that_holds_more_than_it_says_is_refused(home, capsys):
    """Its size in the directory is what bounds the memory."""
    out = io.BytesIO(packed(home).read_bytes())
    text = out.getvalue()
    with zipfile.ZipFile(out) as archive:
        size = archive.getinfo(f"run/{VERDICTS}").file_size
    at = text.rindex(size.to_bytes(4, "little"))
    (home / "lies.zip").write_bytes(text[:at] + (9).to_bytes(4, "little") + text[at + 4 :])
    assert main(["merge", str(home / "lies.zip")]) == 1
    assert "is not opened" in capsys.readouterr().err


def test_times_of_files_stay(home):
    package = packages.open_package(packed(home))
    moment = package.written[VERDICTS]
    assert abs(moment - datetime.datetime.now(datetime.timezone.utc)) < datetime.timedelta(days=1)
