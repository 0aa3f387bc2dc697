"""Load in captured and in hand-made files; forms after proc(5), accounting/psi.rst, sysfs ABI."""

import json

import pytest

from clustergate.machine.load import load_between, read_load

CPU = "sys/devices/system/cpu"


@pytest.fixture
def planted(tmp_path):
    """Turn files by name into what read_load makes of them, each time in a new root."""

    def planted(files):
        root = tmp_path / str(len(list(tmp_path.iterdir())))
        root.mkdir()
        for name, content in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_load(root)

    return planted


@pytest.fixture
def captured(planted, data):
    def captured(name):
        return planted(json.loads((data / "machine" / f"{name}.json").read_text())["files"])

    return captured


def reading(uptime_s, steal=(0, 0), idle=(0, 0), user=(0, 0)):
    """What /proc says of two CPUs at a moment, in jiffies."""
    rows = [("cpu", sum(user), sum(idle), sum(steal))]
    rows += [(f"cpu{cpu}", user[cpu], idle[cpu], steal[cpu]) for cpu in (0, 1)]
    lines = [f"{name} {u} 0 0 {i} 0 0 0 {s} 0 0\n" for name, u, i, s in rows]
    return {"proc/uptime": f"{uptime_s:.2f} 1.00\n", "proc/stat": "".join(lines) + "intr 1 2 3\n"}


# --- one reading ------------------------------------------------------------------------------


def test_a_captured_reading(captured):
    assert captured("load-before") == {
        "uptime_s": 4102.24,
        "load_average_1min": 0.78,
        "running_tasks": 3,
        "jiffies": 228518 + 84138 + 504155 + 1426 + 308 + 397,
        "idle_jiffies": 504155,
        "iowait_jiffies": 1426,
        "steal_jiffies": 397,
        "cpu_pressure_us": 491367261,
        "memory_pressure_us": 0,
        "io_pressure_us": 15407795,
        "clock_mhz_lowest": 2596.138,
        "clock_mhz_mean": 2596.1,
        "clock_mhz_highest": 2596.138,
        "temperature_celsius_highest": None,
        "throttle_events": None,
        "memory_available_kib": 23941988,
        "pages_swapped_out": 0,
        "oom_kills": 0,
    }


def test_what_a_server_shows_besides(planted):
    load = planted(
        {
            f"{CPU}/cpu0/cpufreq/scaling_cur_freq": "2400000\n",
            f"{CPU}/cpu10/cpufreq/scaling_cur_freq": "3500000\n",
            f"{CPU}/cpu2/cpufreq/scaling_cur_freq": "3400000\n",
            f"{CPU}/cpu0/thermal_throttle/core_throttle_count": "3\n",
            f"{CPU}/cpu2/thermal_throttle/core_throttle_count": "4\n",
            f"{CPU}/cpu0/thermal_throttle/package_throttle_count": "0\n",
            "sys/class/hwmon/hwmon0/name": "drivetemp\n",
            "sys/class/hwmon/hwmon0/temp1_input": "90000\n",
            "sys/class/hwmon/hwmon1/name": "coretemp\n",
            "sys/class/hwmon/hwmon1/temp1_input": "61000\n",
            "sys/class/hwmon/hwmon1/temp2_input": "58500\n",
            "proc/vmstat": "pswpin 2\npswpout 5\noom_kill 1\n",
        }
    )
    assert (load["clock_mhz_lowest"], load["clock_mhz_mean"]) == (2400, 3100)
    assert load["clock_mhz_highest"] == 3500
    assert load["throttle_events"] == 7
    assert load["temperature_celsius_highest"] == 61.0
    assert load["pages_swapped_out"] == 5
    assert load["oom_kills"] == 1


PROC = ("stat", "uptime", "loadavg", "vmstat", "meminfo", "cpuinfo", "pressure/cpu", "pressure/io")


@pytest.mark.parametrize(
    "content",
    [None, b"\xff\xfe\x00\x01" * 64, b"", b"1.2.3 4\n", b"9" * 5000, b"cpu 1 2\nprocessor: x\n"],
)
def test_nothing_readable_is_all_absent(planted, content):
    files = {f"proc/{name}": content for name in PROC} if content is not None else {}
    load = planted(files)
    assert set(load.values()) == {None}
    assert load_between(load, load) == {}


# --- between two ------------------------------------------------------------------------------


def test_three_loops_on_two_cores(captured):
    # Three endless loops on two cores for four seconds: both busy, and one always waits.
    assert load_between(captured("load-before"), captured("load-after")) == {
        "elapsed_s": 4.03,
        "busy_percent": 100.0,
        "iowait_percent": 0.0,
        "steal_percent": 0.0,
        "cpu_pressure_percent": pytest.approx(100 * 3643242 / 4.03e6, abs=0.001),
        "memory_pressure_percent": 0.0,
        "io_pressure_percent": pytest.approx(100 * 35544 / 4.03e6, abs=0.001),
        "pages_swapped_out": 0,
        "oom_kills": 0,
        "load_average_1min": 1.04,
        "clock_mhz_mean": pytest.approx(2596.1),
        "memory_available_kib": pytest.approx(23941988, rel=0.01),
    }


def test_steal_is_told_apart_from_work(planted):
    before = planted(reading(100, steal=(10, 10), idle=(500, 500), user=(0, 0)))
    after = planted(reading(101, steal=(10, 40), idle=(550, 500), user=(50, 70)))
    between = load_between(before, after)
    assert (between["steal_percent"], between["busy_percent"]) == (15.0, 60.0)


def test_counters_that_run_backwards_add_nothing(planted):
    before = planted(reading(100, idle=(500, 500)))
    after = planted(reading(101, idle=(499, 499), user=(100, 100)))
    assert load_between(before, after)["busy_percent"] == 100.0


def test_a_node_started_anew_says_nothing(planted):
    before, after = planted(reading(1000, user=(9, 9))), planted(reading(10, user=(1, 1)))
    assert load_between(before, after) == {}


def test_pressure_without_its_files_is_absent_and_the_rest_is_told(planted):
    between = load_between(planted(reading(1)), planted(reading(2, user=(100, 0), idle=(0, 100))))
    assert "cpu_pressure_percent" not in between
    assert between["busy_percent"] == 50.0


def test_heat_swap_and_throttling(planted):
    before, after = planted(reading(1)), planted(reading(2))
    before |= {"temperature_celsius_highest": 40.0, "throttle_events": 5, "pages_swapped_out": 2}
    after |= {"temperature_celsius_highest": 91.5, "throttle_events": 9, "pages_swapped_out": 3}
    between = load_between(before, after)
    assert between["temperature_celsius_highest"] == 91.5
    assert between["throttle_events"] == 4
    assert between["pages_swapped_out"] == 1
