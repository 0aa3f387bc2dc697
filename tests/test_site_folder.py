"""A site that keeps its own files outside the clone."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from clustergate import cli
from clustergate.cli.dry_run import case_differences, dry_run
from clustergate.core.model import BadRequest, CaseId, ClustergateError
from clustergate.core.paths import checkout, site_folder, state_dir
from clustergate.judge.references.lookup import references_of
from clustergate.sites import choice
from clustergate.sites import configs as sites
from clustergate.sites.modes import mode_named


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "site_configs").mkdir()
    (tmp_path / "references").mkdir()
    template = (checkout() / "site_configs" / "template.py").read_text()
    (tmp_path / "site_configs" / "alpha.py").write_text(
        template.replace('"name": "example"', '"name": "alpha"').replace("example-login", "a")
    )
    monkeypatch.setenv("CLUSTERGATE_SITE_FOLDER", str(tmp_path))
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path / "state"))
    return tmp_path


def test_the_clone_is_the_site_folder_until_another_is_named():
    assert site_folder({}) == checkout()
    assert site_folder({"CLUSTERGATE_SITE_FOLDER": "/x/../x/site"}) == Path("/x/../x/site")


def test_its_site_configs_are_found(folder):
    assert choice.find("alpha") == folder / "site_configs" / "alpha.py"
    assert choice.find(hostname="a17") == folder / "site_configs" / "alpha.py"
    assert choice.find("local") == checkout() / "site_configs" / "local.py"
    assert [path.stem for path in choice.site_files()] == ["alpha", "local"]


def test_its_own_description_of_an_unknown_machine_comes_first(folder):
    shutil.move(folder / "site_configs" / "alpha.py", folder / "site_configs" / "local.py")
    assert choice.choose(hostname="laptop", environ={}) == choice.Choice(
        folder / "site_configs" / "local.py",
        "as detected, since no site config claims this machine, laptop",
        fallback=True,
    )


def test_its_references_are_read(folder):
    known = references_of("alpha")
    assert known.source == folder / "references" / "alpha.yaml"


def test_a_dry_run_refuses_references_that_are_wrong(folder, capsys):
    (folder / "references" / "alpha.yaml").write_text("HplCheck: [\n")
    assert cli.main(["dry-run", "--site", "alpha"]) != 0
    assert "references/alpha.yaml:" in capsys.readouterr().err


def test_dry_run_of_all_goes_on_where_a_site_config_has_no_stack(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    without = TWO_PARTITIONS.replace('    [stack("mpich"), stack("openmpi")],\n', "")
    without = without.replace(', "environs": ["mpich"]', "")
    (folder / "site_configs" / "a-new-one.py").write_text(without)
    monkeypatch.setattr(sys.modules["clustergate.cli.dry_run"], "is_clone", lambda: False)
    assert cli.main(["dry-run"]) != 0
    said = capsys.readouterr()
    assert re.fullmatch(r"alpha.py: \d+ cases\nlocal.py: \d+ cases\n", said.out)
    assert "a-new-one.py" in said.err


def test_full_disk_is_no_fault_of_a_site_config(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = "OSError: [Errno 28] No space left on device: 'stage'"
    ended = subprocess.CompletedProcess(["reframe"], 1, told, "")
    monkeypatch.setattr(sys.modules["clustergate.cli.dry_run"], "capture", lambda *_, **__: ended)
    with pytest.raises(ClustergateError, match=r"^the disk is full while ReFrame wrote") as caught:
        dry_run(folder / "site_configs" / "alpha.py", mode_named("smoke"))
    assert caught.value.reason.code == "disk.full"


def test_what_only_reads_makes_no_home(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "home").touch()
    monkeypatch.setenv("CLUSTERGATE_HOME", str(folder / "home" / "none"))
    assert cli.main(["list", "stacks", "--site", "alpha"]) == 0
    assert "not set up" in capsys.readouterr().out


TWO_PARTITIONS = """\
from clustergate.judge.references.lookup import references_of
from clustergate.sites import configuration, stack

def partition(name, cores):
    extras = {"cores_per_node": cores, "memory_bytes_per_node": 2**30}
    extras |= {"nominal_gflops_per_core": 1.0, "mode": "published-000"}
    return {"name": name, "scheduler": "local", "launcher": "clustergate", "extras": extras}

partitions = [partition("a", 12), {**partition("b", 16), "environs": ["mpich"]}]
site_configuration = configuration(
    [{"name": "beta", "hostnames": ["b"], "partitions": partitions}],
    [stack("mpich"), stack("openmpi")],
)
"""


def test_each_partition_runs_the_cases_of_its_own_size_and_stacks(folder):
    path = folder / "site_configs" / "beta.py"
    path.write_text(TWO_PARTITIONS)
    # HPCC, and IMB of 2, 4, 8, 12 processes with two stacks; of 2, 4, 8, 16 with one.
    assert dry_run(path, mode_named("smoke")) == 5 * 2 + 5


def test_dry_run_jobs_ask_for_the_nodes_they_need(folder):
    path = folder / "site_configs" / "beta.py"
    slurm = TWO_PARTITIONS.replace('"scheduler": "local"', '"scheduler": "slurm", "access": ACCESS')
    slurm = slurm.replace('"cores_per_node": cores', '"cores_per_node": 6, "nodes": cores')
    path.write_text("ACCESS = []\n" + slurm)
    # HPCC, and IMB of 2, 4, 8, 16, 32, 64, 72 or 96 processes, of which 64 leave two cores free;
    # of 2, 4, 8 and, in the larger one, 16 processes with one on each node as well.
    assert dry_run(path, mode_named("smoke")) == (1 + 7 + 3) * 2 + (1 + 7 + 4)
    # ReFrame pays for each record of its log, and nobody reads that of a dry run.
    assert " debug" not in (state_dir() / "reframe.log").read_text()
    path.write_text('ACCESS = ["--nodes=10"]\n' + slurm)
    with pytest.raises(BadRequest) as told:
        dry_run(path, mode_named("smoke"))

    assert "beta:a: HpccCheck: it requests 10 nodes, but 72 ranks, 6 per node, need 12, " in (
        str(told.value)
    )


def test_dry_run_tells_what_each_partition_lacks():
    """What a dry run lacks is told in a short sentence for each partition."""
    expected = [CaseId("HplCheck", f"x:{name}", f"mpi{i}") for name in "ab" for i in range(60)]
    strange = CaseId("HplCheck", "x:b", "other")
    told = [*case_differences(expected, [*expected[8:60], *expected[60:], strange])]
    assert told == [
        "of 60 cases x:a lacks 8 (HplCheck with mpi0, HplCheck with mpi1, HplCheck with mpi2, "
        "HplCheck with mpi3 and 4 more)",
        "of 60 cases x:b also has 1 (HplCheck with other)",
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('site_configuration = {\n "systems": [\n', r"alpha.py:2: '\[' was never closed"),
        ('x = {"hostnames": HOSTS}\n', r"alpha.py:1: hostnames must be a literal list"),
        ('x = {\n"hostnames": ["(("]}\n', r"alpha.py:2: hostnames: '\(\(': missing \)"),
        ("\0", r"alpha.py"),
    ],
)
def test_a_damaged_site_config_is_no_unknown_machine(folder, text, sentence, capsys):
    (folder / "site_configs" / "alpha.py").write_text(text)
    with pytest.raises(sites.SiteError, match=sentence):
        choice.find(hostname="laptop")
    assert cli.main(["activate"]) == 2
    said = capsys.readouterr()
    assert len(said.err.splitlines()) == 1
    # The command that says what to do is found all the same.
    (exported,) = said.out.splitlines()
    assert exported.startswith("export PATH=")


def test_a_site_folder_that_is_not_there_is_no_unknown_machine(tmp_path, monkeypatch):
    monkeypatch.setenv("CLUSTERGATE_SITE_FOLDER", str(tmp_path / "typo"))
    with pytest.raises(sites.SiteError, match=r"typo, which is not a folder; correct it"):
        choice.find(hostname="laptop")


def test_a_state_folder_that_cannot_be_made_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path / "file"))
    path = checkout() / "site_configs" / "local.py"
    site = sites.load(path)
    with pytest.raises(
        ClustergateError, match=r"^\S+results cannot be written: .*CLUSTERGATE_HOME"
    ) as told:
        sites.reframe_variables(path, site)
    assert "free some space" not in str(told.value)


def test_unwritable_folder_above_state_is_no_fault_of_the_config(tmp_path, monkeypatch):
    """A folder above the state that cannot be made is not the site configs fault."""
    (tmp_path / "home").write_text("")
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path / "home" / ".local" / "state"))
    path = checkout() / "site_configs" / "local.py"
    site = sites.load(path)
    with pytest.raises(ClustergateError) as refused:
        sites.reframe_variables(path, site)
    assert str(refused.value).startswith(f"{tmp_path}/home/.local/state/results cannot be written")


def test_bad_process_counts_are_refused_with_the_site_config(folder, monkeypatch):
    monkeypatch.setenv("CLUSTERGATE_PROCESS_COUNTS", "two")
    with pytest.raises(ClustergateError, match="CLUSTERGATE_PROCESS_COUNTS is a list"):
        sites.load(choice.find("alpha"))


def test_the_template_of_a_hostfile_is_named_where_it_is(folder, capsys):
    assert cli.main(["hostfile", "alpha"]) == 2
    (named,) = re.findall(r"(\S+template\.txt) explains", capsys.readouterr().err)
    assert Path(named).is_file()
