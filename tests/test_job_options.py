"""What commands ask the scheduler for: reservations, QOS, accounts, some nodes and not others."""

import contextlib
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from clustergate import cli
from clustergate.core.model import ClustergateError
from clustergate.core.store import run_folder
from clustergate.run import placing
from clustergate.run.placing import keep_out, options_for
from clustergate.run.request import Request, read_request, write_request
from clustergate.sites import configs as sites
from clustergate.sites import exclusions, modes
from clustergate.sites.description import Partition, Site
from clustergate.sites.schedulers import chooses_nodes, scheduler_of
from clustergate.sites.schedulers.job_options import JobOptions, words_in
from clustergate.sites.schedulers.slurm.options import partition_of_access

SITE = """\
from clustergate.sites import configuration, stack

extras = {"cores_per_node": 4, "memory_bytes_per_node": 2**33, "nominal_gflops_per_core": 30}
site_configuration = configuration(
    systems=[{
        "name": "wished",
        "hostnames": ["wished"],
        "partitions": [
            {
                "name": name,
                "scheduler": "SCHEDULER",
                "launcher": "clustergate",
                "access": [f"--partition={name}"],
                "extras": {**extras, "nodes": nodes},
            }
            for name, nodes in (("thin", 4), ("fat", 2))
        ],
    }],
    stacks=[stack("mpich")],
)
"""
SINFO = """#!/bin/sh
cat <<'EOF'
thin*|3|1|4|n[1-3]|new|idle|none
thin*|1|1|4|n4|(null)|idle|none
fat|2|1|4|f[1-2]|(null)|idle|none
EOF
"""
Write = Callable[[str], Site]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write a site config for a scheduler and load it, beside a sinfo that knows six nodes."""
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CLUSTERGATE_SITE_FOLDER", str(tmp_path))
    # What is kept out is noted there, for the processes of ReFrame.
    monkeypatch.setenv(exclusions.WITHOUT_NODES, "")
    monkeypatch.setenv("CLUSTERGATE_QOS", "")
    sinfo = tmp_path / "bin" / "sinfo"
    sinfo.parent.mkdir()
    sinfo.write_text(SINFO)
    sinfo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{sinfo.parent}:{os.environ['PATH']}")

    def write(scheduler: str) -> Site:
        path = tmp_path / "wished.py"
        path.write_text(SITE.replace("SCHEDULER", scheduler))
        return sites.load(path)

    return write


def sizes(tmp_path: Path) -> dict[str, int]:
    return {p.name: p.shape.nodes for p in sites.load(tmp_path / "wished.py").partitions}


def excluded(tmp_path: Path) -> dict[str, str]:
    """Return what sbatch takes of each partition's options: the last --exclude."""
    loaded = sites.load(tmp_path / "wished.py").partitions
    said = {p.name: re.findall(r"--exclude=(\S+)", " ".join(p.access)) for p in loaded}
    return {name: names[-1] for name, names in said.items() if names}


def test_nodes_that_access_excludes_stay_out_beside_those_left_out(
    site: Write, tmp_path: Path
) -> None:
    """The suite's own --exclude was the last, and nodes that the site excludes were measured."""
    path = tmp_path / "wished.py"
    described = site("slurm")
    text = path.read_text().replace('("thin", 4)', '("thin", 3)')
    path.write_text(text.replace('"access": [', '"access": ["-x n4" * (name == "thin"), '))
    options_for(JobOptions(exclude="n1"), described)
    assert excluded(tmp_path) == {"thin": "n[1,4]", "fat": "n1"}
    assert sizes(tmp_path) == {"thin": 2, "fat": 2}
    # So with a hostfile.
    (tmp_path / "hostfiles").mkdir()
    nodes = "n[1-4] slots=4\nf[1-2] slots=4\nexclude n2 2026-11-01 slow\n"
    (tmp_path / "hostfiles" / "wished.txt").write_text(nodes)
    assert excluded(tmp_path) == {"thin": "n[1-2,4]", "fat": "n[1-2]"}
    # Of three that were to be there, all but those.
    nodes = nodes.replace("f[1-2] slots=4", "f[1-2] slots=8")
    (tmp_path / "hostfiles" / "wished.txt").write_text(nodes)
    assert sizes(tmp_path)["thin"] == 1


@pytest.mark.parametrize(
    ("access", "said"),
    [
        ('"--exclude=/etc/bad"', "has an --exclude of its own"),
        ('"--nodelist=n1", "-w n2"', "has --nodelist with two values"),
        ('"-C new", "--constraint=old"', "has --constraint with two values"),
    ],
)
def test_access_options_taken_last_by_sbatch_refused(
    site: Write, tmp_path: Path, access: str, said: str
) -> None:
    path = tmp_path / "wished.py"
    described = site("slurm")
    options_for(JobOptions(exclude="n1"), described)
    path.write_text(path.read_text().replace('"access": [', f'"access": [{access}, '))
    with pytest.raises(sites.SiteError, match=f"partition thin {said}"):
        sites.load(path)


@pytest.mark.parametrize(
    ("options", "option"),
    [
        (["-J", "exclude=n1"], "exclude"),
        (["-S", "HplCheck.launches=1", "-Jx=n1"], "x"),
        (["--job-option=nodelist=n1"], "nodelist"),
        (["--job-option", "--partition=fat"], "--partition"),
        (["-J", "#SBATCH -p fat"], "-p"),
        (["-J", "exclusive", "-J", "power=1", "-p", "builtin", "--exclude=HplCheck"], ""),
    ],
)
def test_nodes_are_not_chosen_behind_the_dashes(options: list[str], option: str) -> None:
    """The job's own option is the last one: nodes that the site excludes were measured."""
    assert chooses_nodes(options) == option


def test_a_job_option_that_chooses_nodes_is_refused(
    site: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site("slurm")
    path = str(tmp_path / "wished.py")
    assert cli.main(["check", "--site", path, "--", "-J", "partition=fat"]) == 2
    assert "-J partition after `--` would override" in capsys.readouterr().err


def test_words_become_options_of_every_job(site: Write) -> None:
    asked = JobOptions(reservation="maint_7", qos="high", account="proj.a")
    assert options_for(asked, site("slurm")) == [
        "--job-option=reservation=maint_7",
        "--job-option=qos=high",
        "--job-option=account=proj.a",
    ]
    assert words_in(["--job-option=exclude=n1", *options_for(asked, site("slurm"))]) == [
        "exclude=n1",
        *scheduler_of("slurm").words(asked),
    ]


@pytest.mark.parametrize("word", ["a b", "x\n#SBATCH --uid=0", "$(id)", "-x", "ä"])
def test_a_word_that_could_be_more_is_refused(word: str) -> None:
    with pytest.raises(ClustergateError, match="--qos takes a single name"):
        JobOptions(qos=word)


def test_only_some_nodes_and_not_others_leave_the_rest(site: Write, tmp_path: Path) -> None:
    assert options_for(JobOptions(nodes="n[1-3],f1", exclude="n2"), site("slurm")) == []
    assert excluded(tmp_path) == {"thin": "f2,n[2,4]", "fat": "f2,n[2,4]"}
    # Each partition has lost its own nodes, and none of the other's.
    assert sizes(tmp_path) == {"thin": 2, "fat": 1}


def test_nodes_that_a_constraint_keeps_out_are_not_missing(site: Write, tmp_path: Path) -> None:
    """Of three with the feature two were measured, as one without it was left out."""
    described, path = site("slurm"), tmp_path / "wished.py"
    text = path.read_text().replace('"access": [', '"access": ["--constraint=new", ')
    path.write_text(text.replace('("thin", 4)', '("thin", 3)'))
    options_for(JobOptions(exclude="n4"), described)
    assert sizes(tmp_path)["thin"] == 3


def test_what_is_kept_out_later_comes_on_top(site: Write, tmp_path: Path) -> None:
    described = site("slurm")
    options_for(JobOptions(exclude="n1"), described)
    keep_out(["n2"])
    assert excluded(tmp_path)["thin"] == "n[1-2]"
    assert sizes(tmp_path) == {"thin": 2, "fat": 2}


def test_with_a_hostfile_it_is_the_hostfile_that_keeps_out(site: Write, tmp_path: Path) -> None:
    (tmp_path / "hostfiles").mkdir()
    (tmp_path / "hostfiles" / "wished.txt").write_text("n[1-4] slots=4\nf[1-2] slots=4\n")
    assert options_for(JobOptions(nodes="n[1-2]"), site("local")) == []
    hostfile = exclusions.hostfile_of("wished")
    assert hostfile is not None
    assert [node.name for node in hostfile.usable] == ["n1", "n2"]


@pytest.mark.parametrize(
    ("scheduler", "wishes", "said"),
    [
        ("slurm", JobOptions(nodes="n9"), "there is no node n9: known: f[1-2],n[1-4]"),
        ("slurm", JobOptions(exclude="n[1-4],f[1-2]"), "no node is left to measure"),
        (
            "local",
            JobOptions(qos="high"),
            "--qos works with Slurm only, and no partition of wished uses it",
        ),
        ("local", JobOptions(nodes="n1"), "--nodes works with Slurm"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    site: Write, scheduler: str, wishes: JobOptions, said: str
) -> None:
    with pytest.raises(ClustergateError, match=re.escape(said)):
        options_for(wishes, site(scheduler))


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (
            "allocation failure: Invalid account or account/partition combination specified",
            "Invalid account or account/partition combination specified; ",
        ),
        ("allocation failure: Invalid qos specification", "Invalid qos specification; "),
        ("allocation failure: Requested node configuration is not available", ""),
    ],
)
def test_what_slurm_refuses_is_refused_before_anything_is_measured(
    site: Write, tmp_path: Path, said: str, why: str
) -> None:
    """Every case failed by itself, in what ReFrame prints of a command that failed."""
    sbatch = tmp_path / "bin" / "sbatch"
    sbatch.write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 1\n")
    sbatch.chmod(0o755)
    refused = pytest.raises(
        ClustergateError,
        match=f"partition thin with --qos=high and --account=proj: {why}`sacctmgr show",
    )
    with refused if why else contextlib.nullcontext():
        options_for(JobOptions(qos="high", account="proj"), site("slurm"))


def test_reservation_for_others_refused_before_measuring(
    site: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The screening ended with what ReFrame prints of a command that failed."""
    monkeypatch.setattr(placing, "note_words", lambda words: None)
    sbatch = tmp_path / "bin" / "sbatch"
    said = "allocation failure: Access denied to requested reservation"
    sbatch.write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 1\n")
    sbatch.chmod(0o755)
    refused = r"no job in the reservation window: Access denied to .*; `scontrol show reservation w"
    with pytest.raises(ClustergateError, match=refused):
        options_for(JobOptions(reservation="window"), site("slurm"))


def test_nodes_of_unseen_partitions_left_out_too(
    site: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With SINFO_PARTITION=thin, --nodes n1 left all nodes of the other partition in."""
    sinfo = tmp_path / "bin" / "sinfo"
    thin = "echo 'thin*|2|1|4|n[1-2]|new|idle|none'"
    narrowed = f'#!/bin/sh\n[ -z "$SINFO_PARTITION" ] || {{ {thin}; exit; }}\n'
    sinfo.write_text(narrowed + SINFO.partition("\n")[2])
    monkeypatch.setenv("SINFO_PARTITION", "thin")
    options_for(JobOptions(nodes="n1"), site("slurm"))
    assert excluded(tmp_path)["fat"] == "f[1-2],n[2-4]"


def test_where_nobody_knows_the_nodes_none_is_left_out_in_silence(
    site: Write, tmp_path: Path
) -> None:
    described = site("slurm")
    (tmp_path / "bin" / "sinfo").write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(ClustergateError, match="no hostfile and no scheduler lists"):
        options_for(JobOptions(exclude="n1"), described)
    assert scheduler_of("slurm").node_names() == []


@pytest.mark.parametrize(
    ("access", "partition"),
    [
        (["--partition=main", "--exclusive"], "main"),
        (["-p main"], "main"),
        (["-p", "main"], "main"),
        (["--exclusive"], ""),
        (["--partition=a", "--partition=b"], "b"),
    ],
)
def test_the_partition_in_what_sbatch_is_told(access: list[str], partition: str) -> None:
    assert partition_of_access(access) == partition


def test_a_resumed_run_leaves_out_what_it_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    asked = Request(modes.mode_named("smoke"), tmp_path / "s.py", without_nodes="n[1-2]")
    run_folder("20261101T080000Z-1").mkdir(parents=True)
    write_request(asked, "20261101T080000Z-1")
    assert read_request("20261101T080000Z-1").without_nodes == "n[1-2]"


@pytest.mark.parametrize("command", ["check", "gate", "screen", "ab"])
def test_every_command_that_measures_takes_them(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        cli.main([command, "--help"])
    said = capsys.readouterr().out
    assert all(f"--{name}" in said for name in JobOptions.__dataclass_fields__)


@pytest.mark.parametrize("scheduler", ["slurm", "pbs"])
def test_a_partition_of_a_scheduler_says_how_many_nodes_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheduler: str
) -> None:
    """It used to have one, and the gate of a cluster opened when that one was judged."""
    monkeypatch.setenv("CLUSTERGATE_SITE_FOLDER", str(tmp_path))
    path = tmp_path / "wished.py"
    text = SITE.replace("SCHEDULER", scheduler).replace('{**extras, "nodes": nodes}', "extras")
    path.write_text(text)
    with pytest.raises(sites.SiteError, match=f"thin, whose jobs go through {scheduler}, .* many"):
        sites.load(path)
    (tmp_path / "hostfiles").mkdir()
    (tmp_path / "hostfiles" / "wished.txt").write_text("n[1-3] slots=4\n")
    assert [partition.nodes for partition in sites.load(path).partitions] == [3, 3]


def stacks_of(tmp_path: Path) -> dict[str, list[str]]:
    return {p.name: [*p.stacks] for p in sites.load(tmp_path / "wished.py").partitions}


def test_a_partition_of_which_no_node_is_left_has_no_case(site: Write, tmp_path: Path) -> None:
    options_for(JobOptions(nodes="n[1-2]"), site("slurm"))
    assert stacks_of(tmp_path) == {"thin": ["mpich"], "fat": []}


def test_nodes_of_a_hostfile_can_be_those_of_one_partition(site: Write, tmp_path: Path) -> None:
    (tmp_path / "hostfiles").mkdir()
    (tmp_path / "hostfiles" / "wished.txt").write_text("n[1-4] slots=4\nf[1-2] slots=8\n")
    path = tmp_path / "wished.py"
    described = site("local")
    text = path.read_text()
    path.write_text(text.replace("{**extras,", '{**extras, "cores_per_node": 12 - 2 * nodes,'))
    options_for(JobOptions(nodes="f[1-2]"), described)
    assert stacks_of(tmp_path) == {"thin": [], "fat": ["mpich"]}


def test_a_run_without_any_node_is_refused(site: Write, tmp_path: Path) -> None:
    site("slurm")
    keep_out(["n1", "n2", "n3", "n4", "f1", "f2"])
    with pytest.raises(ClustergateError, match="this run excludes every node"):
        sites.load(tmp_path / "wished.py")


@pytest.mark.parametrize(
    ("scheduler", "access", "exclusive"),
    [
        ("slurm", ["--partition=main", "--exclusive"], True),
        ("slurm", ["-p main --exclusive"], True),
        ("flux", ["--exclusive"], True),
        # Others of the same user may run there.
        ("slurm", ["--exclusive=user"], False),
        ("slurm", ["--exclude=n1"], False),
        ("pbs", ["-l place=scatter:excl"], True),
        ("pbspro", ["-l select=1:ncpus=4,place=excl"], True),
        ("pbs", ["-l place=scatter"], False),
        ("slurm", [], False),
    ],
)
def test_whether_a_job_has_its_nodes_for_itself(
    scheduler: str, access: list[str], exclusive: bool
) -> None:
    assert scheduler_of(scheduler).is_exclusive(access) is exclusive
    # What the site config says counts.
    for stated in (True, False):
        partition = Partition(name="main", scheduler=scheduler, access=access, exclusive=stated)
        assert partition.facts.exclusive is stated
    # Else nobody says it, and it is seen.
    of_access = Partition(name="main", scheduler=scheduler, access=access).facts.exclusive
    assert of_access is (exclusive or None)
