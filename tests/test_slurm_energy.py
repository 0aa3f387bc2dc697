"""Energy by Slurm; the texts are synthetic, in the form that sacct(1) and scontrol(1) describe."""

import os

import pytest

from clustergate.core.model import Launch
from clustergate.machine.power import Power
from clustergate.sites.schedulers import scheduler_of
from clustergate.sites.schedulers.slurm.energy import (
    Step,
    boundary_of,
    powers_of_launches,
    steps_of,
)

SACCT = """\
4711|1700000000|1700000100|52000
4711.batch|1700000000|1700000100|51000
4711.extern|1700000000|1700000100|52000
4711.0|1700000010|1700000040|9000
4711.1|1700000050|1700000090|
4711.2|1700000050|1700000090|0
4711.3|1700000050|1700000090|18446744073709551614
4711.4|1700000050|Unknown|7
"""
CONFIG = """\
Configuration data as of 2023-11-14T22:13:20
AcctGatherEnergyType    = {}
AcctGatherNodeFreq      = 30 sec
"""
NODES = "whole nodes by IPMI, told by Slurm"


def launch(order=0, started=1700000010.4, seconds=30.0):
    return Launch(order=order, started=started, seconds=seconds)


def test_only_steps_of_their_own_with_energy_count():
    assert list(steps_of(SACCT)) == [Step("4711.0", 1700000010, 1700000040, 9000)]
    assert list(steps_of("Slurm accounting storage is disabled\n")) == []


@pytest.mark.parametrize(
    ("plugin", "boundary"),
    [
        ("acct_gather_energy/ipmi", NODES),
        ("acct_gather_energy/rapl", "processor packages and memory, told by Slurm"),
        ("pm_counters", "whole nodes by their counters, told by Slurm"),
        # Graphics processors alone compute no HPL here.
        ("acct_gather_energy/gpu", ""),
        ("acct_gather_energy/none", ""),
        ("(null)", ""),
    ],
)
def test_the_plugin_tells_what_is_counted(plugin, boundary):
    assert boundary_of(CONFIG.format(plugin)) == boundary
    assert boundary_of("") == ""


def test_a_launch_has_the_energy_of_its_step():
    found = powers_of_launches([launch()], list(steps_of(SACCT)), NODES)
    assert found == {0: Power(300.0, NODES)}


@pytest.mark.parametrize(
    "other",
    [
        launch(started=1700000014.0),
        launch(seconds=60.0),
        launch(seconds=26.0),
    ],
)
def test_another_launch_has_not(other):
    assert powers_of_launches([other], list(steps_of(SACCT)), NODES) == {}


def test_what_is_not_sure_is_not_told():
    step = Step("1.0", 1700000010, 1700000040, 9000)
    assert powers_of_launches([launch()], [step, step], NODES) == {}
    assert powers_of_launches([launch()], [step], "") == {}
    short = Step("1.0", 1700000010, 1700000012, 600)
    assert powers_of_launches([launch(seconds=2.0)], [short], NODES) == {}


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Put stand-ins for Slurm's commands on PATH; return how to make one."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def make(name, script):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    return make


def test_slurm_is_asked_in_seconds_since_the_epoch(slurm):
    slurm("scontrol", f"cat <<END\n{CONFIG.format('acct_gather_energy/ipmi')}END")
    slurm("sacct", f'[ "$SLURM_TIME_FORMAT $1" = "%s --jobs=4711" ] && cat <<END\n{SACCT}END')
    assert scheduler_of("slurm").powers("4711", [launch()]) == {0: Power(300.0, NODES)}


def test_a_slurm_that_counts_nothing_or_fails_gives_no_power(slurm):
    slurm("scontrol", "exit 1")
    slurm("sacct", f"cat <<END\n{SACCT}END")
    assert scheduler_of("slurm").powers("4711", [launch()]) == {}
    slurm("scontrol", f"cat <<END\n{CONFIG.format('acct_gather_energy/ipmi')}END")
    slurm("sacct", "echo 'Slurm accounting storage is disabled' >&2; exit 1")
    assert scheduler_of("slurm").powers("4711", [launch()]) == {}
