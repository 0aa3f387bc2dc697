"""Which site config a command takes, and where it refuses to guess."""

import dataclasses
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from clustergate import cli
from clustergate.cli import running
from clustergate.core import store
from clustergate.core.model import ClustergateError
from clustergate.core.paths import checkout
from clustergate.judge.history import stored_runs
from clustergate.launch.allocation import BATCH_JOB
from clustergate.run.request import Request, read_request
from clustergate.sites import choice
from clustergate.sites import configs as sites
from clustergate.sites.modes import mode_named


def add(folder: Path, name: str, *patterns: str) -> Path:
    """Write a site config that claims machines by these patterns."""
    template = (checkout() / "site_configs" / "template.py").read_text()
    text = template.replace('"name": "example"', f'"name": "{name}"')
    text = text.replace(r'[r"example-login\d+", r"n\d{3}"]', repr(list(patterns)))
    path = folder / "site_configs" / f"{name}.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a site's own folder, in which no system is described yet."""
    monkeypatch.setenv("CLUSTERGATE_SITE_FOLDER", str(tmp_path))
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path / "state"))
    return tmp_path


@pytest.fixture
def desk(monkeypatch) -> None:
    """Be on a machine outside of any job, with the clone's own site configs."""
    for name in (*BATCH_JOB, "CLUSTERGATE_SITE_FOLDER"):
        monkeypatch.delenv(name, raising=False)


def test_without_the_extra_an_unknown_system_may_be_one_of_it(desk, monkeypatch):
    told = "pip install 'clustergate[evaluations]'"
    with pytest.raises(ClustergateError) as with_it:
        choice.find("cray-opterom")
    files = [path for path in choice.site_files() if path.stem == choice.FALLBACK]
    monkeypatch.setattr(choice, "site_files", lambda: files)
    with pytest.raises(ClustergateError) as without:
        choice.find("cray-opteron")
    assert (told in str(with_it.value), told in str(without.value)) == (False, True)


NAMES = [
    (r"node1", "node1", True),
    (r"node1", "node1.cluster.example", True),
    (r"node1", "node10", False),
    (r"node1|login", "login2", False),
    (r"node1|login", "node1", True),
    (r"n\d{3}$", "n017", True),
    (r"n\d{3}", "n0170", False),
    (r"(?i)node1", "NODE1", True),
    (r"node1\.a\.example", "node1.a.example", True),
    (r"node1\.a\.example", "node1", False),
]


@pytest.mark.parametrize(("pattern", "host", "claimed"), NAMES)
def test_a_pattern_is_for_the_whole_name(folder, pattern, host, claimed):
    path = add(folder, "alpha", "other", pattern)
    if claimed:
        chosen = choice.choose(hostname=host, environ={})
        assert chosen == choice.Choice(path, f"whose hostnames {pattern!r} match {host}")
    else:
        with pytest.raises(sites.SiteError, match=f"no site config claims this machine, {host}"):
            choice.choose(hostname=host, environ={})


@pytest.mark.parametrize(("pattern", "host", "claimed"), NAMES)
def test_plain_reframe_takes_the_same_system(folder, pattern, host, claimed):
    path = add(folder, "alpha", "other", pattern)
    command = [str(Path(sys.executable).parent / "reframe"), "--show-config=systems/0/name"]
    said = {"RFM_CONFIG_FILES": str(path), "RFM_AUTODETECT_METHODS": f"echo {host}"}
    environment = {k: v for k, v in os.environ.items() if k != "RFM_SYSTEM"}
    ended = subprocess.run(
        command, env={**environment, **said}, capture_output=True, text=True, check=True
    )
    taken = ended.stdout.strip().splitlines()[-1]
    assert taken == ('"alpha"' if claimed else '"generic"')


def test_no_machine_is_claimed_twice(folder):
    one, other = add(folder, "alpha", r"node\d+"), add(folder, "beta", r"node1\d")
    assert choice.find(hostname="node2") == one
    with pytest.raises(sites.SiteError, match="several site configs claim this machine") as told:
        choice.find(hostname="node12")
    assert str(one) in str(told.value)
    assert str(other) in str(told.value)
    assert choice.find("beta", "node12") == other


def test_a_machine_that_none_claims_is_described_as_it_is_found(desk):
    chosen = choice.choose(hostname="laptop", environ={})
    assert chosen.fallback
    assert str(chosen).startswith(
        "site local, as detected, since no site config claims this machine, laptop"
    )


def test_site_config_by_name_alone_leaves_a_desk(tmp_path, monkeypatch, desk):
    """A site config that is used by name alone leaves the machine a desk."""
    shutil.copytree(checkout() / "site_configs", tmp_path / "site_configs")
    monkeypatch.setattr(choice, "site_folder", lambda: tmp_path)
    monkeypatch.setattr(choice, "suite_folder", lambda name: tmp_path / name)
    path = add(tmp_path, "museum")
    with pytest.raises(sites.SiteError, match="describes systems of its own"):
        choice.choose(hostname="laptop", environ={})
    path.write_text(path.read_text() + "by_name_alone = True\n")
    assert choice.choose(hostname="laptop", environ={}).fallback
    assert choice.choose("museum", "laptop", {}).path == path


@pytest.mark.parametrize("variable", ["SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID"])
def test_a_batch_job_is_on_no_desk(desk, variable):
    said = rf"batch job \({variable} is set\); name a site config .*; known: local$"
    with pytest.raises(sites.SiteError, match=said):
        choice.choose(hostname="n017", environ={variable: "17"})
    assert not choice.choose("local", "n017", {variable: "17"}).fallback


def test_beside_systems_of_its_own_a_site_has_no_desk(folder):
    add(folder, "alpha", "node")
    said = "those of alpha match only the beginning of its name.*describes systems of its own"
    with pytest.raises(sites.SiteError, match=said) as told:
        choice.choose(hostname="node7", environ={})
    assert "--site NAME" in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{'systems': [{'name': 'x'}]}", "returns; let it say `site_configuration = "),
        (
            "{'systems': [{'name': 'x', 'hostnames': [], 'partitions': []}], 'environments': []}",
            r"x.py: it names no MPI stack.*; add stacks=",
        ),
    ],
    ids=["a plain config of ReFrame", "without stacks"],
)
def test_a_site_config_with_nothing_to_measure_tells_what_it_lacks(tmp_path, text, told):
    path = tmp_path / "x.py"
    path.write_text(f"site_configuration = {text}")
    with pytest.raises(sites.SiteError, match=told):
        sites.load(path)


def test_40_hostnames_under_a_mistyped_key_make_no_desk(folder):
    path = add(folder, "alpha", "node7")
    path.write_text(path.read_text().replace('"hostnames"', '"hostname"'))
    with pytest.raises(sites.SiteError, match="describes systems of its own"):
        choice.choose(hostname="node7", environ={})
    with pytest.raises(
        sites.SiteError, match=r"alpha has no key 'hostname'; did you mean 'hostnames'"
    ):
        sites.load(path)


def test_a_site_folder_that_describes_nothing_is_no_desk(folder):
    with pytest.raises(sites.SiteError, match="CLUSTERGATE_SITE_FOLDER names, describes no system"):
        choice.choose(hostname="laptop", environ={})


def test_a_site_config_in_the_clone_is_one_of_the_site_too(tmp_path, monkeypatch, desk):
    clone = tmp_path / "clone"
    shutil.copytree(checkout() / "site_configs", clone / "site_configs")
    monkeypatch.setattr(choice, "site_folder", lambda: clone)
    monkeypatch.setattr(choice, "suite_folder", lambda name: clone / name)
    assert choice.choose(hostname="laptop", environ={}).fallback
    add(clone, "alpha")
    with pytest.raises(sites.SiteError, match="describes systems of its own"):
        choice.choose(hostname="laptop", environ={})


def test_site_config_of_the_wheel_named_by_its_folder(tmp_path, monkeypatch, desk):
    """A site config that the wheel carries is named by the folder it lies in."""
    wheel = tmp_path / "suite"
    shutil.copytree(checkout() / "site_configs", wheel / "site_configs")
    monkeypatch.setattr(choice, "site_folder", lambda: tmp_path / "config")
    monkeypatch.setattr(choice, "suite_folder", lambda name: wheel / name)
    add(wheel, "alpha")
    with pytest.raises(sites.SiteError, match=f"and {wheel / 'site_configs'} describes systems"):
        choice.choose(hostname="laptop", environ={})


def test_the_published_systems_claim_no_machine(desk):
    for path in choice.site_files():
        if path.stem != choice.FALLBACK:
            assert choice.hostname_patterns(path) == [], path
            assert sites.load(path).hostnames == [], path


@pytest.mark.parametrize(
    ("named", "host", "told"),
    [
        ("alpha", "node1", "as named"),
        ("alpha", "node10", "as named, although its hostnames do not match node10"),
        ("local", "node1", "as named, although alpha claims this machine, node1"),
        ("local", "node10", "as named"),
        ("broken", "node10", "as named"),
    ],
)
def test_what_is_named_is_taken_and_what_speaks_against_it_is_said(folder, named, host, told):
    add(folder, "alpha", "node1")
    (folder / "site_configs" / "broken.py").write_text("(")
    chosen = choice.choose(named, host, {"SLURM_JOB_ID": "1"})
    assert (chosen.why, chosen.disputed) == (told, False)
    add(folder, "beta", "node2")
    assert choice.choose("alpha", "node2", {}).disputed
    # On a machine of both somebody has to say which.
    add(folder, "gamma", "node[12]")
    assert not choice.choose("gamma", "node2", {}).disputed


COMMANDS = [
    *(["check"], ["activate"], ["setup"], ["screen"], ["baseline"]),
    *(["ab", "--a", "mpich", "--b", "openmpi"], ["evaluation", "run", "003"]),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_no_command_guesses_in_a_batch_job(tmp_path, monkeypatch, desk, capsys, command):
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    assert cli.main(command) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "no site config claims this machine" in line
    assert "--site NAME" in line


@pytest.mark.parametrize("named", [False, True])
def test_the_first_line_of_a_check_says_which_site_and_why(
    tmp_path, monkeypatch, desk, capsys, named
):
    """And whoever consumes the run can tell that nothing but a guess speaks for it."""
    asked: list[Request] = []

    def measured(wanted: Request, *more: object, **options: object) -> None:
        asked.append(wanted)
        raise ClustergateError("measured")

    monkeypatch.setattr(running, "run_session", measured)
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    cli.main(["check", *(["--site", "local"] if named else [])])
    (first, *_) = capsys.readouterr().out.splitlines()
    why = "as named" if named else "as detected, since no site config claims"
    assert first.startswith(f"site local, {why}")
    assert first == asked[0].site_told
    assert asked[0].fallback is not named


def test_a_run_that_goes_on_says_the_same(tmp_path, monkeypatch, capsys):
    run_id = "20261101T000000Z-1"
    local = choice.find("local")
    site_told = "site local, as detected, since nobody knows it"
    wanted = Request(mode_named("smoke"), local, site_told=site_told, fallback=True)
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    store.make_folder(store.run_folder(run_id))
    record = {**dataclasses.asdict(wanted), "mode": "smoke", "site": str(local)}
    store.write_json(store.run_folder(run_id) / stored_runs.ASKED, record)
    assert read_request(run_id) == wanted

    def measured(*more: object, **options: object) -> None:
        raise ClustergateError("measured")

    monkeypatch.setattr(running, "run_session", measured)
    cli.main(["check", "--resume", run_id])
    assert capsys.readouterr().out == f"{site_told}\n"


def test_system_run_by_name_where_hostnames_do_not_match(folder, capsys):
    path = add(folder, "alpha", "elsewhere")
    assert cli.main(["activate", "--site", "alpha"]) == 0
    exports = capsys.readouterr().out
    assert f"export RFM_CONFIG_FILES={path}\n" in exports
    assert "export RFM_SYSTEM=alpha\n" in exports
