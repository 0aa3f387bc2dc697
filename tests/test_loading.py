"""No test is lost in silence where ReFrame only warns, and no site config loads a check."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from clustergate import cli
from clustergate.core.paths import checkout
from clustergate.run import prepare

TEST = """\
import reframe as rfm
from reframe.core.builtins import parameter, run_after


@rfm.simple_test
class Check(rfm.RunOnlyRegressionTest):
"""
GOOD = TEST + '    valid_systems, valid_prog_environs, executable = ["*"], ["*"], "true"\n'
LOST = {
    "import": (
        GOOD.replace("\n\n\n", "\nimport nonexistent\n\n"),
        r"lost.py:3: .*\(ModuleNotFound",
    ),
    "error": (
        f"{GOOD}\n\nraise RuntimeError('a typo')\n",
        r"lost.py:10: .*\(RuntimeError: a typo\); fix or remove it, or the value",
    ),
    "syntax": (f"{GOOD}\ndef (\n", r"lost.py(:|, line )9"),
    "setting": (
        f"{GOOD}\nfrom clustergate.sites.modes import mode_named\n\nmode_named('fast')\n",
        "ERROR: .*unknown mode 'fast'; known: ",
    ),
    "hook": (
        f"{GOOD}\n    @run_after('init')\n    def fail(self):\n        raise OSError('no')\n",
        r"lost.py:11: this check does not load \(OSError: no\); fix or remove it",
    ),
    "parameter": (f"{GOOD}    size = parameter()\n", r"'Check': .* parameters are undefined: size"),
    "unbound": (f"{TEST}    pass\n", "'Check': 'valid_systems' not defined"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder of checks with one that is good."""
    checks = tmp_path / "checks"
    checks.mkdir()
    (checks / "__init__.py").write_text((checkout() / "reframe_checks/__init__.py").read_text())
    (checks / "good.py").write_text(GOOD.replace("Check", "GoodCheck"))
    return checks


def listed(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Let ReFrame list the checks of a folder; it loads all of them, as for a run."""
    command = [str(Path(sys.executable).parent / "reframe"), "-c", str(folder), "-R", "-l"]
    config = checkout() / "site_configs" / "local.py"
    said = {"RFM_CONFIG_FILES": str(config), "RFM_SYSTEM": "local"}
    return subprocess.run(
        [*command, "--nocolor", *options],
        env={**os.environ, **said, "CLUSTERGATE_HOME": str(folder.parent / "state")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(("text", "told"), LOST.values(), ids=LOST)
def test_a_check_that_does_not_load_ends_the_call(folder, text, told):
    (folder / "lost.py").write_text(text)
    # Whatever else is selected: what is lost might have been.
    ended = listed(folder, "-n", "GoodCheck")
    assert ended.returncode == 1, ended.stdout
    assert re.search(told, ended.stdout), ended.stdout
    assert "matched checks" not in ended.stdout


def test_no_stack_is_searched_for_a_warning_that_is_suppressed(folder):
    stub = "import inspect\n\n\ndef stack(*_):\n    raise RuntimeError('searched')\n\n\n"
    (folder / "a_stub.py").write_text(f"{stub}inspect.stack = stack\n")
    ended = listed(folder)
    assert ended.returncode == 0, ended.stdout
    assert "Found 1 check(s)" in ended.stdout


def test_a_check_that_uses_a_deprecated_name_is_told_so(folder):
    uses = "\n    @run_after('init')\n    def use(self):\n        self.variables['A'] = 'b'\n"
    (folder / "old.py").write_text(GOOD + uses)
    ended = listed(folder)
    assert ended.returncode == 0, ended.stdout
    assert "old.py:11: WARNING: the use of 'variables' is deprecated" in ended.stdout


def test_setting_that_no_test_has_is_an_error(folder):
    """A setting that some tests do not have is no error and one that none has is."""
    variable = "    launches = variable(int, value=1)\n"
    (folder / "other.py").write_text(
        f"from reframe.core.builtins import variable\n{GOOD}{variable}"
    )
    for named in ("launches=5", "GoodCheck.launches=5", "Check.launches=5"):
        ended = listed(folder, "-n", "GoodCheck", "-S", named)
        assert ended.returncode == 0, ended.stdout
    for named in ("launchs=5", "GoodCheck.launchs=5"):
        ended = listed(folder, "-n", "GoodCheck", "-S", named)
        assert ended.returncode == 1, ended.stdout
        refused = (
            "no check has a setting launchs; correct the name after -S; did you mean 'launches'?"
        )
        assert refused in ended.stdout


@pytest.mark.parametrize("setting", ["env_vars=UCX_TLS:tcp", "HplCheck.local=1"])
def test_a_setting_of_the_job_is_left_to_the_site(folder, setting):
    """Nothing in the record of a case would tell it, and references would apply to it."""
    name = setting.partition("=")[0].rpartition(".")[2]
    checks = folder.parent / "of_the_suite"
    checks.symlink_to(checkout() / "reframe_checks")
    ended = listed(checks, "-n", "HplCheck", "-S", setting)
    assert ended.returncode == 1, ended.stdout
    assert f"error: {name} after -S would measure something else" in ended.stdout
    assert "does not load" not in ended.stdout


def test_a_site_config_loads_neither_a_check_nor_reframe(tmp_path):
    script = (
        "import sys\nfrom pathlib import Path\nfrom clustergate.sites.configs import load\n"
        f"load(Path({str(checkout() / 'site_configs' / 'local.py')!r}))\n"
        "print([name for name in sys.modules if name.split('.')[0] in "
        "('reframe', 'reframe_checks')])\n"
    )
    said = {**os.environ, "CLUSTERGATE_HOME": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, "-c", script], env=said, capture_output=True, text=True, check=True
    )
    assert ended.stdout == "[]\n"


@pytest.mark.parametrize(
    ("options", "refused"),
    [
        (["-S", "nbb=2"], "no check has a setting nbb; correct the name after -S; did you mean"),
        (["--bogus"], "clustergate: unrecognized arguments: --bogus; correct what follows `--`"),
        (["--dry-run"], "clustergate: --dry-run runs no check; correct what follows `--`"),
    ],
)
def test_option_refused_by_reframe_told_before_anything_begins(
    tmp_path, monkeypatch, capsys, options, refused
):
    """It was told after the stacks were there and the node quiet."""
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    monkeypatch.setattr(prepare, "provide_each", lambda *_, **__: pytest.fail("it began"))
    words = ["check", "--site", "local", "--check", "HplCheck", "--"]
    assert cli.main([*words, *options]) == 2
    assert refused in capsys.readouterr().err.splitlines()[-1]
    assert not [*tmp_path.glob("results/runs/*")]
