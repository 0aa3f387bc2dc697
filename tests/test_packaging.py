"""What the package says of itself to those who install it, and what it does where they do."""

import email
import os
import pwd
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from clustergate import cli
from clustergate.cli import COMMANDS
from clustergate.core import paths
from clustergate.core.paths import checkout


def metadata_of(folder, origin=""):
    """Return the folder of the metadata of a package made in another folder, and what it says."""
    for name in ("pyproject.toml", "README.md", "LICENSE", "setup.py"):
        shutil.copy(checkout() / name, folder / name)
    made = "import setuptools.build_meta as b; print(b.prepare_metadata_for_build_wheel('.'))"
    ended = subprocess.run(
        [sys.executable, "-c", made],
        cwd=folder,
        env={**os.environ, "PACKAGE_ORIGIN": origin},
        capture_output=True,
        text=True,
        check=True,
    )
    information = folder / ended.stdout.split()[-1]
    return information, email.message_from_string((information / "METADATA").read_text())


@pytest.mark.parametrize(
    ("origin", "told"),
    [
        ("https://code.example.org/hpc/clustergate.git", True),
        ("https://job:s3cret@code.example.org/hpc/clustergate", True),
        ("git@code.example.org:hpc/clustergate.git", True),
        ("ssh://git@code.example.org/hpc/clustergate.git", True),
        ("/srv/git/clustergate", False),
        ("", False),
    ],
)
def test_package_names_its_clone_without_a_credential(tmp_path, origin, told):
    _, metadata = metadata_of(tmp_path, origin)
    of_clone = ["Source, https://code.example.org/hpc/clustergate"]
    assert metadata.get_all("Project-URL", []) == (of_clone if told else [])
    assert "s3cret" not in str(metadata)


def test_a_package_made_of_the_clone_carries_its_licence(tmp_path):
    information, told = metadata_of(tmp_path)
    assert told["License-Expression"] == "BSD-3-Clause"
    assert told.get_all("License-File") == ["LICENSE"]
    (licence,) = information.rglob("LICENSE")
    assert "Copyright (c) 2026, the clustergate authors" in licence.read_text()


def test_every_command_is_held_apart_from_the_others():
    contracts = (checkout() / "pyproject.toml").read_text()
    independent = contracts[contracts.index('name = "No command imports another"') :]
    for command in (name.replace("-", "_") for name in COMMANDS):
        assert f'"clustergate.cli.{command}"' in independent, command


def pins(name):
    text = (checkout() / name).read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z][a-z0-9-]*)==([^ ;]+)", text, re.MULTILINE))


def test_what_measures_is_pinned_as_where_the_project_is_tested():
    measuring, all_of_it = pins("ci/requirements.txt"), pins("ci/constraints.txt")
    assert measuring < all_of_it
    assert {"numpy", "reframe-hpc", "pip"} <= {name for name, _ in measuring}
    assert not {"ruff", "mypy", "pytest", "sphinx"} & {name for name, _ in measuring}


def test_sbom_names_the_version_left_to_git():
    """`make release` writes the wheel's version over this line."""
    text = (checkout() / "pyproject.toml").read_text(encoding="utf-8")
    assert re.findall("^dynamic = .*", text, re.MULTILINE) == [
        'dynamic = ["version", "urls"]  # setup.py has the second'
    ]
    recipe = (checkout() / "Makefile").read_text(encoding="utf-8").partition("\nrelease:")[2]
    assert "s/^dynamic = .*/version = " in recipe


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Be the installed package: its folders lie inside of it, and there is no clone."""
    suite = tmp_path / "clustergate" / "suite"
    for name in ("references", "site_configs"):
        (suite / name).mkdir(parents=True)
        (suite / name / "local").write_text("the suite's")
    monkeypatch.setattr(paths, "_INSTALLED", suite)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in (
        "CLUSTERGATE_HOME",
        "CLUSTERGATE_SITE_FOLDER",
        "XDG_STATE_HOME",
        "XDG_CONFIG_HOME",
    ):
        monkeypatch.delenv(name, raising=False)
    return suite


def test_without_a_clone_results_and_the_sites_files_are_the_users(installed, tmp_path):
    home = tmp_path / "home"
    assert paths.state_dir() == home / ".local" / "state" / "clustergate"
    assert paths.site_folder() == home / ".config" / "clustergate"
    named = {"XDG_STATE_HOME": "/var/state", "XDG_CONFIG_HOME": "relative"}
    assert paths.state_dir(named) == Path("/var/state/clustergate")
    assert paths.site_folder(named) == home / ".config" / "clustergate"
    assert paths.state_dir({**named, "CLUSTERGATE_HOME": "/shared"}) == Path("/shared")


@pytest.mark.parametrize("said", [None, ""])
def test_home_of_the_account_without_one_in_the_environment(installed, monkeypatch, said):
    monkeypatch.delenv("HOME")
    if said is not None:
        monkeypatch.setenv("HOME", said)
    homes = []

    def run(_: object) -> int:
        homes.append(paths.state_dir())
        return 0

    monkeypatch.setattr("clustergate.cli.list.run", run)
    assert cli.main(["list", "runs"]) == 0
    own = pwd.getpwuid(os.getuid()).pw_dir
    assert homes == [Path(own, ".local", "state", "clustergate")]


def test_suites_files_serve_until_the_site_has_its_own(installed, tmp_path, monkeypatch):
    assert paths.site_file("references", "local") == installed / "references" / "local"
    own = tmp_path / "home" / ".config" / "clustergate" / "references"
    assert paths.site_file("references", "alpha") == own / "alpha"
    own.mkdir(parents=True)
    (own / "local").touch()
    assert paths.site_file("references", "local") == own / "local"
    monkeypatch.setenv("CLUSTERGATE_SITE_FOLDER", str(tmp_path / "named"))
    assert paths.site_file("references", "local") == tmp_path / "named" / "references" / "local"


def test_help_without_a_clone_names_the_pages(installed, capsys):
    """Without a clone the help says where the pages are that messages name."""
    (installed / "docs").mkdir()
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    assert f"docs/, site_configs/ and hostfiles/ are in {installed}\n" in capsys.readouterr().out


def test_apptainer_recipe_copies_what_is_there(tmp_path):
    """Apptainer itself is not needed: its shell lines are read by ShellCheck."""
    text = (checkout() / "ci" / "container" / "clustergate.def").read_text(encoding="utf-8")
    header, *parts = re.split(r"^%(\w+)$", text, flags=re.MULTILINE)
    assert re.findall(r"^(\w+): \S+$", header, re.MULTILINE) == ["Bootstrap", "From"]
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    assert list(sections) == ["files", "post", "environment", "runscript"]
    copied = [line.split()[0] for line in sections["files"].split("\n") if line.strip()]
    assert "dist/*.whl" in copied
    assert all((checkout() / name).is_file() for name in copied if not name.startswith("dist/"))
    for name in ("post", "environment", "runscript"):
        (tmp_path / name).write_text(sections[name])
        linted = subprocess.run(
            [str(Path(sys.executable).with_name("shellcheck")), "--shell=sh", str(tmp_path / name)],
            capture_output=True,
            text=True,
        )
        assert linted.returncode == 0, linted.stdout


@pytest.mark.mpi
@pytest.mark.long
def test_wheel_measures_from_a_folder_with_space_and_umlaut(tmp_path):
    """Built from the source archive, installed into an empty environment, run without the clone."""
    place = tmp_path / "Prüf stand"
    (place / "home").mkdir(parents=True)
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CLUSTERGATE_", "RFM_", "XDG_", "PYTHON", "VIRTUAL_ENV"))
    }

    def run(*command, **variables):
        ended = subprocess.run(
            [str(word) for word in command],
            cwd=place,
            env={**inherited, "HOME": str(place / "home"), **variables},
            capture_output=True,
            text=True,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", place / "dist"]
    run(*build, checkout())
    (wheel,) = (place / "dist").glob("*.whl")
    run(*build, "--wheel", checkout() / "evaluations")
    run(sys.executable, "-m", "venv", place / "environment")
    python = place / "environment" / "bin" / "python"
    pinned = checkout() / "ci" / "requirements.txt"
    run(python, "-m", "pip", "install", "--quiet", "--require-hashes", "-r", pinned)
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", wheel)

    clustergate = python.with_name("clustergate")
    assert wheel.name.split("-")[1] in run(clustergate, "--version")
    told = run(
        *(clustergate, "check", "--check", "HplCheck", "--stack", "mpich"),
        PYTHONHOME="/nowhere",
        PYTHONPATH=str(checkout() / "clustergate" / "core" / "files"),
    )
    assert "1 of 1 benchmarks ran" in told
    (pages,) = re.findall(r"^docs/, .* are in (.*)$", run(clustergate, "--help"), re.M)
    named = re.findall(r"docs/[\w-]+\.md", run(clustergate, "gate", "--help"))
    assert named
    assert all((Path(pages) / page).is_file() for page in named)
    state = place / "home" / ".local" / "state" / "clustergate"
    (report,) = state.glob("results/runs/*/report.html")
    assert report.stat().st_size
    assert not (place / "home" / ".config").exists()

    assert "cray-opteron" not in run(clustergate, "list", "systems", "--all")
    for words in (
        ("evaluation", "list"),
        ("check", "--mode", "published-001"),
        ("check", "--site", "cray-opteron"),
    ):
        with pytest.raises(AssertionError, match=r"pip install 'clustergate\[evaluations\]'"):
            run(clustergate, *words)
    assert re.findall(r"^(\S+): \d+ cases$", run(clustergate, "dry-run"), re.M) == ["local.py"]
    offline = ("--quiet", "--no-index", f"--find-links={place / 'dist'}")
    run(python, "-m", "pip", "install", *offline, "clustergate[evaluations]")
    assert "HPCC and IMB on five" in run(clustergate, "evaluation", "list")
    assert run(clustergate, "dry-run", "--site", "cray-opteron").startswith("cray-opteron.py: ")
