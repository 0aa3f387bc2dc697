import json
import random
from typing import Any

import pytest

from clustergate.machine.changes import (
    Difference,
    describe_one,
    differences,
    label,
    shown,
)

GOOD: dict[str, dict[str, Any]] = {
    "hardware": {"cores": 64, "microcode": "0x1", "memory_total_gib": 251.5, "board": "X"},
    "kernel": {
        "release": "6.1.0-40-amd64",
        "command_line": ["ro", "quiet", "mitigations=off"],
        "mitigations": ["retbleed: Vulnerable", "spectre_v2: Mitigation: Retpolines"],
        "transparent_huge_pages": "always",
        "clocksource": "tsc",
        "governor": "performance",
        "swappiness": 60,
    },
    "limits": {"locked_memory_bytes": "unlimited", "open_files": 1024},
    "network": {
        "interface.eth0.state": "up",
        "interface.eth0.mtu_bytes": 9000,
        "infiniband.mlx5_0.firmware": "20.35.1012",
        "infiniband.mlx5_0.driver_version": None,
        "infiniband.mlx5_0 port 1.rate": "200 Gb/sec (4X HDR)",
        "infiniband.mlx5_0 port 1.state": "4: ACTIVE",
    },
    "software": {"compiler": "cc 12.2.0", "reframe": "4.10.4"},
}


def described(found):
    return ", ".join(map(describe_one, found))


def changed(group, **values):
    """GOOD with some values changed."""
    return {**GOOD, group: {**GOOD[group], **values}}


def without(group, beginning):
    kept = {name: value for name, value in GOOD[group].items() if not name.startswith(beginning)}
    return {**GOOD, group: kept}


def test_nothing_changed():
    again = json.loads(json.dumps(GOOD))
    assert differences(GOOD, again) == []


def test_one_line_for_kernel_and_huge_pages():
    after = changed("kernel", transparent_huge_pages="madvise", release="6.1.0-41-amd64")
    assert described(differences(GOOD, after)) == (
        "kernel release 6.1.0-40-amd64 -> 6.1.0-41-amd64, transparent huge pages always -> madvise"
    )


@pytest.mark.parametrize(
    ("group", "name", "value", "line"),
    [
        ("kernel", "governor", None, "governor performance -> absent"),
        ("hardware", "cores", 63, "cores 64 -> 63"),
        ("hardware", "memory_total_gib", 235.8, "memory total 251.5 GiB -> 235.8 GiB"),
        ("limits", "locked_memory_bytes", 65536, "locked memory unlimited -> 65536 bytes"),
        ("kernel", "command_line", ["ro"], "kernel command line without quiet mitigations=off"),
        (
            "kernel",
            "command_line",
            ["ro", "quiet", "mitigations=auto"],
            "kernel command line without mitigations=off and with mitigations=auto",
        ),
        (
            "kernel",
            "command_line",
            ["quiet", "ro", "mitigations=off"],
            "kernel command line in another order",
        ),
        (
            "kernel",
            "mitigations",
            ["retbleed: Mitigation: IBPB", "spectre_v2: Mitigation: Retpolines"],
            "mitigations without retbleed: Vulnerable and with retbleed: Mitigation: IBPB",
        ),
        ("kernel", "mitigations", [], "mitigations without retbleed: Vulnerable, spectre_v2: "),
        ("network", "interface.eth0.mtu_bytes", 1500, "interface eth0 mtu 9000 bytes -> 1500"),
    ],
)
def test_a_change_in_words(group, name, value, line):
    found = differences(GOOD, changed(group, **{name: value}))
    assert found == [Difference(f"{group}.{name}", GOOD[group][name], value)]
    assert described(found).startswith(line)


def test_what_becomes_visible():
    before = changed("kernel", governor=None)
    assert described(differences(before, GOOD)) == "governor absent -> performance"


def test_likeliest_explanation_first():
    names = [
        "hardware.cores",
        "kernel.release",
        "kernel.command_line",
        "kernel.mitigations",
        "kernel.transparent_huge_pages",
        "kernel.governor",
        "hardware.microcode",
        "kernel.clocksource",
        "network.infiniband.mlx5_0 port 1.rate",
        "network.interface.eth0.mtu_bytes",
        "limits.locked_memory_bytes",
        "limits.open_files",
        "hardware.memory_total_gib",
        "kernel.swappiness",
        "hardware.board",
        "software.compiler",
    ]
    shuffled = list(names)
    random.Random(1).shuffle(shuffled)
    before: dict[str, dict[str, str]] = {}
    for name in shuffled:
        group, _, rest = name.partition(".")
        before.setdefault(group, {})[rest] = "old"
    after = {group: dict.fromkeys(values, "new") for group, values in before.items()}
    assert [difference.name for difference in differences(before, after)] == names


def test_a_device_that_went_is_one_difference():
    (port,) = differences(GOOD, without("network", "infiniband.mlx5_0 port 1."))
    assert port.name == "network.infiniband.mlx5_0 port 1"
    assert port.after is None
    assert described([port]) == (
        "infiniband mlx5_0 port 1 rate 200 Gb/sec (4X HDR), state 4: ACTIVE -> absent"
    )


def test_a_device_that_came_is_one_difference():
    before = {**without("network", "infiniband.")}
    before["network"]["infiniband"] = None
    assert [(found.name, found.before, found.after) for found in differences(before, GOOD)] == [
        ("network.infiniband.mlx5_0", None, "firmware 20.35.1012"),
        (
            "network.infiniband.mlx5_0 port 1",
            None,
            "rate 200 Gb/sec (4X HDR), state 4: ACTIVE",
        ),
    ]


def test_names_that_only_one_version_records_say_nothing():
    assert differences(GOOD, changed("kernel", new_name=1)) == []
    assert differences(changed("kernel", old_name=1), GOOD) == []
    assert differences(GOOD, {**GOOD, "gpus": {"model": "X"}}) == []
    assert differences(GOOD, {name: GOOD[name] for name in GOOD if name != "software"}) == []


def test_a_group_of_devices_alone_is_compared_as_well():
    devices = {"network": {"interface.eth0.state": "up"}}
    more = {"network": {"interface.eth0.state": "down", "queueing_discipline": "fq"}}
    for before, after in ((devices, more), (more, devices)):
        assert [found.name for found in differences(before, after)] == [
            "network.interface.eth0.state"
        ]


def test_kernel_memory_kept_for_itself_is_no_change():
    assert differences(GOOD, changed("hardware", memory_total_gib=251.4)) == []


@pytest.mark.parametrize(
    ("name", "old", "new", "changes"),
    [
        ("libraries", ["libibverbs.so.1 libibverbs.so.1.14.39.0"], ["libibverbs.so.1.14.39.0"], []),
        ("library_of_mpich", ["libmpi.so.12 0a1b"], ["libmpi.so.12.1.2 0a1b"], []),
        (
            *("library_of_mpich", ["libmpi.so.12 0a1b"], ["libmpi.so.12 2c3d"]),
            ["library of mpich without libmpi.so.12 0a1b and with libmpi.so.12 2c3d"],
        ),
        (
            *("libraries", ["a.so.1 a.so.1.1", "b.so.1 b.so.1.2"], ["a.so.1 a.so.1.1", "b.so.1.3"]),
            ["libraries without b.so.1 b.so.1.2 and with b.so.1.3"],
        ),
        # What is no file is another one by its name.
        ("drivers", ["mlx5_core 1.0"], ["bnxt_en 1.0"], ["drivers without mlx5_core 1.0 and with"]),
    ],
)
def test_a_link_and_where_it_leads_are_one_file(
    name: str, old: list[str], new: list[str], changes: list[str]
) -> None:
    found = differences({"software": {name: old}}, {"software": {name: new}})
    assert [
        describe_one(one)[: len(said)] for one, said in zip(found, changes, strict=True)
    ] == changes


def test_values_for_a_reader():
    assert shown("hardware.virtual_machine", True) == "yes"
    assert shown("hardware.virtual_machine", False) == "no"
    assert shown("kernel.command_line", []) == "none"
    assert shown("limits.stack_size_bytes", "unlimited") == "unlimited"
    assert shown("limits.cpu_time_s", 60) == "60 s"
    assert label("limits.cpu_time_s") == "cpu time"
    assert label("network.interface.eth0.100.speed_mbit_s") == "interface eth0.100 speed"


def test_lost_program_named_and_new_wheel_told_briefly():
    """The removal of a benchmark was told as "15 files 1a2b -> 14 files 3c4d"."""

    def told(before: list[str], after: list[str]) -> str:
        name = "benchmark_programs_of_mpich"
        found = differences({"software": {name: before}}, {"software": {name: after}})
        return str(described(found))

    both = ["hpcc 1a", "token_ring 2b", "xhpl 3c"]
    assert told(both, both) == ""
    of = "benchmark programs of mpich"
    assert told(both, [both[0], both[2]]) == f"{of} without token_ring"
    assert told(both[1:], both) == f"{of} with hpcc"
    assert told(both, [both[0], "xhpl 4d"]) == (
        f"{of} without token_ring and with other builds of xhpl"
    )
