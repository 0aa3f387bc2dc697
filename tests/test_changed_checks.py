import io
import subprocess

import pytest

from clustergate import cli
from clustergate.benchmarks.registry import every_check
from clustergate.cli.changed_checks import checks_of_files
from clustergate.paths import checkout
from clustergate.session import changed_checks
from clustergate.session.changed_checks import checks_in, concerns, selected

FILES = {"hpl.py": ["HplCheck"], "imb.py": ["ImbMpi1Check", "ImbRmaCheck"], "base.py": []}
EVERY = ("HplCheck", "HpccCheck", "ImbMpi1Check")


def checks(*changed, system="alpha"):
    return selected(concerns(changed, FILES, EVERY, system, ["alpha", "beta", "local"]))


@pytest.mark.parametrize(
    "path",
    [
        *("README.md", "docs/gitlab.md", "references/README.md"),
        *("tests/test_x.py", "tools/bench/pairs.py"),
    ],
)
def test_what_no_figure_depends_on_concerns_no_check(path):
    assert checks(path) == ()


def test_a_check_file_concerns_its_own_checks():
    assert checks("reframe_checks/hpl.py") == ("HplCheck",)
    # Also those that the mode leaves out: nothing else would run what changed.
    assert checks("reframe_checks/imb.py", "docs/x.md") == ("ImbMpi1Check", "ImbRmaCheck")
    assert checks("reframe_checks/imb.py", "reframe_checks/hpl.py") == (
        *("ImbMpi1Check", "ImbRmaCheck", "HplCheck"),
    )


@pytest.mark.parametrize(
    "path",
    [
        "reframe_checks/base.py",
        "reframe_checks/removed.py",
        "clustergate/kernels/src/proof.c",
        "clustergate/benchmarks/imb/output.py",
        "clustergate/stacks/wheels/mpich.txt",
        "constraints.txt",
        ".gitlab-ci.yml",
        "hpl.py",
        "elsewhere/reframe_checks/hpl.py",
        '"with a \\n line"',
    ],
)
def test_whatever_else_changed_concerns_every_check(path):
    assert checks(path) == EVERY
    assert checks("docs/x.md", "reframe_checks/hpl.py", path) != ("HplCheck",)


@pytest.mark.parametrize("folder", ["site_configs", "references", "hostfiles"])
def test_what_belongs_to_another_system_concerns_none_of_this_one(folder):
    assert checks(f"{folder}/beta.yaml") == ()
    assert checks(f"{folder}/beta.yaml", system="beta") == EVERY
    assert checks(f"{folder}/beta.tuning.yaml") == ()
    # Of no known system: it may be read by any of them.
    assert checks(f"{folder}/common.py") == EVERY


def test_nothing_changed_concerns_nothing():
    assert checks() == ()


def test_each_file_says_why():
    (found,) = concerns(["docs/x.md"], FILES, EVERY, "alpha", ["alpha"])
    assert found == changed_checks.Concern("docs/x.md", (), "no figure depends on it")


def test_checks_are_the_decorated_classes():
    text = "@rfm.simple_test\nclass A(B): ...\n@simple_test\nclass C: ...\nclass D: ...\n"
    text += "@final\nclass E: ...\ndef simple_test(): ...\n"
    assert checks_in(text, "x.py") == ("A", "C")


def test_every_check_of_the_suite_is_found_in_its_file():
    found = checks_of_files()
    assert sorted(name for names in found.values() for name in names) == sorted(every_check())
    assert found["base.py"] == []


def test_the_command_prints_checks_and_tells_why(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("docs/x.md\nreframe_checks/hpl.py\n"))
    assert cli.main(["changed-checks", "--site", "local"]) == 0
    printed = capsys.readouterr()
    assert printed.out == "HplCheck\n"
    assert "docs/x.md: no check: no figure depends on it" in printed.err


def test_it_reads_what_git_prints(monkeypatch, capsys):
    listed = subprocess.run(
        ["git", "ls-files", "reframe_checks", "docs"],
        cwd=checkout(),
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("this is no git clone")
    monkeypatch.setattr("sys.stdin", io.StringIO(listed.stdout))
    assert cli.main(["changed-checks", "--site", "local"]) == 0
    assert set(capsys.readouterr().out.split()) == set(every_check())
