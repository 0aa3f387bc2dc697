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
    load = captured("load-before")
    assert load == {
        "uptime_s": 4102.24,
        "load_average_1min": 0.78,
        "load_average_5min": 1.17,
        "load_average_15min": 1.35,
        "running_tasks": 3,
        "cpu_jiffies": {
            "user": 228518,
            "nice": 0,
            "system": 84138,
            "idle": 504155,
            "iowait": 1426,
            "irq": 0,
            "softirq": 308,
            "steal": 397,
        },
        "cpu_jiffies_by_cpu": {
            "0": {"steal": 188, "total": 409375},
            "1": {"steal": 209, "total": 409564},
        },
        "cpu_pressure_some_avg10_percent": 2.4,
        "cpu_pressure_some_us": 491367261,
        "memory_pressure_some_avg10_percent": 0.0,
        "memory_pressure_some_us": 0,
        "memory_pressure_full_avg10_percent": 0.0,
        "memory_pressure_full_us": 0,
        "io_pressure_some_avg10_percent": 0.0,
        "io_pressure_some_us": 15407795,
        "io_pressure_full_avg10_percent": 0.0,
        "io_pressure_full_us": 11660920,
        "clock_mhz_by_cpu": {"0": 2596.138, "1": 2596.138},
        "temperature_celsius": None,
        "core_throttle_events": None,
        "package_throttle_events": None,
        "memory_available_bytes": 23941988 * 1024,
        "pages_swapped": 0,
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
            "sys/class/hwmon/hwmon2/name": "coretemp\n",
            "sys/class/hwmon/hwmon2/temp1_input": "48000\n",
            "proc/vmstat": "pswpin 2\npswpout 5\noom_kill 1\n",
        }
    )
    assert list(load["clock_mhz_by_cpu"].items()) == [("0", 2400), ("2", 3400), ("10", 3500)]
    assert load["core_throttle_events"] == 7
    assert load["package_throttle_events"] == 0
    assert load["temperature_celsius"] == {"hwmon1 coretemp": 61.0, "hwmon2 coretemp": 48.0}
    assert load["pages_swapped"] == 7
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
    assert set(load_between(load, load).values()) == {None}


def test_a_long_list_of_interrupts_hides_no_cpu(planted):
    files = reading(10, user=(1, 2))
    files["proc/stat"] += "intr 1" + " 0" * 10**6 + "\n"
    assert planted(files)["cpu_jiffies"]["user"] == 3


# --- between two ------------------------------------------------------------------------------


def test_three_loops_on_two_cores(captured):
    between = load_between(captured("load-before"), captured("load-after"))
    # Three endless loops on two cores for four seconds: both busy, and one always waits.
    assert between == {
        "elapsed_s": 4.03,
        "steal_percent": 0.0,
        "steal_worst_cpu_percent": 0.0,
        "iowait_percent": 0.0,
        "busy_cpus_mean": 2.0,
        "load_average_1min_before": 0.78,
        "load_average_1min_after": 1.04,
        "cpu_pressure_some_percent": pytest.approx(100 * 3643242 / 4.03e6, abs=0.001),
        "memory_pressure_some_percent": 0.0,
        "memory_pressure_full_percent": 0.0,
        "io_pressure_some_percent": pytest.approx(100 * 35544 / 4.03e6, abs=0.001),
        "io_pressure_full_percent": 0.0,
        "temperature_celsius_highest": None,
        "core_throttle_events": None,
        "package_throttle_events": None,
        "memory_available_bytes_lowest": 23941988 * 1024,
        "pages_swapped": 0,
        "oom_kills": 0,
    }


def test_steal_of_all_and_of_the_worst_cpu(planted):
    before = planted(reading(100, steal=(10, 10), idle=(500, 500), user=(0, 0)))
    after = planted(reading(101, steal=(10, 40), idle=(550, 500), user=(50, 70)))
    between = load_between(before, after)
    assert between["steal_percent"] == 15.0
    assert between["steal_worst_cpu_percent"] == 30.0
    assert between["busy_cpus_mean"] == 1.2


def test_counters_that_run_backwards_add_nothing(planted):
    before = planted(reading(100, idle=(500, 500)))
    after = planted(reading(101, idle=(499, 499), user=(100, 100)))
    assert load_between(before, after)["busy_cpus_mean"] == 2.0


def test_a_node_started_anew_says_nothing(planted):
    between = load_between(planted(reading(1000, user=(9, 9))), planted(reading(10, user=(1, 1))))
    assert set(between.values()) == {None}


def test_pressure_without_its_files_is_absent_and_the_rest_is_told(planted):
    between = load_between(planted(reading(1)), planted(reading(2, user=(100, 0), idle=(0, 100))))
    assert between["cpu_pressure_some_percent"] is None
    assert between["busy_cpus_mean"] == 1.0


def test_a_cpu_that_went_offline_is_left_out(planted):
    after = planted(reading(101, steal=(50, 90), user=(50, 10)))
    del after["cpu_jiffies_by_cpu"]["1"]
    between = load_between(planted(reading(100)), after)
    assert between["steal_worst_cpu_percent"] == 50.0


def test_heat_swap_and_throttling(planted):
    before = {**planted(reading(1)), "temperature_celsius": {"hwmon1 coretemp": 40.0}}
    after = {**planted(reading(2)), "temperature_celsius": {"hwmon1 coretemp": 91.5}}
    before |= {"core_throttle_events": 5, "pages_swapped": 2, "oom_kills": 0}
    after |= {"core_throttle_events": 9, "pages_swapped": 3, "oom_kills": 1}
    between = load_between(before, after)
    assert between["temperature_celsius_highest"] == 91.5
    assert between["core_throttle_events"] == 4
    assert between["pages_swapped"] == 1
    assert between["oom_kills"] == 1


def test_readings_survive_json(captured):
    before, after = captured("load-before"), captured("load-after")
    stored = [json.loads(json.dumps(reading)) for reading in (before, after)]
    assert load_between(*stored) == load_between(before, after)
