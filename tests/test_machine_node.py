"""Small copies of /proc and /sys, with the figures that come out of them.

``VIRTUAL_MACHINE`` was captured on a virtual machine with two cores of an AMD EPYC (Linux 6.18,
2026-11-21; version 1 of cgroups, an empty version 2 mounted beside it), cut to the files and lines
that count. The other trees are in the form that the kernel's documentation gives (sysfs ABI,
admin-guide/cgroup-v1/memory.rst, admin-guide/cgroup-v2.rst, proc(5)).
"""

import pytest

from clustergate.machine.node import (
    Cache,
    CpuBound,
    MemoryBound,
    parse_cpu_list,
    read_node,
)

GIB = 2**30
MIB = 2**20
NO_LIMIT_V1 = "9223372036854771712\n"

CAPTURED_CGROUP = """\
9:name=systemd:/
8:pids:/
4:memory:/job/388928bc
3:cpuset:/
2:cpuacct:/
1:cpu:/
0::/
"""
CAPTURED_MOUNTS = """\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
"""
CAPTURED_LIMITS = """\
Limit                     Soft Limit           Hard Limit           Units     
Max cpu time              unlimited            unlimited            seconds   
Max locked memory         8388608              8388608              bytes     
Max address space         unlimited            unlimited            bytes     
Max file locks            unlimited            unlimited            locks     
"""  # noqa: W291 - the kernel pads its lines
VIRTUAL_MACHINE = {
    "proc/cpuinfo": "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC\n\n"
    "processor\t: 1\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC\n",
    "proc/meminfo": "MemTotal:       24684084 kB\nMemFree:        24352840 kB\n"
    "MemAvailable:   24339996 kB\nHugePages_Total:       0\n",
    "proc/sys/kernel/arch": "x86_64\n",
    "proc/self/status": "Name:\tcat\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1\n"
    "Mems_allowed_list:\t0\n",
    "proc/self/limits": CAPTURED_LIMITS,
    "proc/self/cgroup": CAPTURED_CGROUP,
    "proc/self/mountinfo": CAPTURED_MOUNTS,
    "sys/fs/cgroup/memory/memory.limit_in_bytes": NO_LIMIT_V1,
    "sys/fs/cgroup/memory/memory.usage_in_bytes": "69963776\n",
    "sys/fs/cgroup/memory/job/memory.limit_in_bytes": NO_LIMIT_V1,
    "sys/fs/cgroup/memory/job/memory.usage_in_bytes": "204525568\n",
    "sys/fs/cgroup/memory/job/388928bc/memory.limit_in_bytes": NO_LIMIT_V1,
    "sys/fs/cgroup/memory/job/388928bc/memory.usage_in_bytes": "3817472\n",
    "sys/fs/cgroup/memory/job/388928bc/memory.stat": "cache 9248768\ninactive_file 8192\n"
    "total_cache 55103488\ntotal_inactive_file 1048576\n",
    "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
    "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
    "sys/devices/system/cpu/online": "0-1\n",
    "sys/devices/system/cpu/offline": "\n",
    "sys/devices/system/node/has_memory": "0\n",
    "sys/devices/system/node/node0/cpulist": "0-1\n",
    "sys/devices/system/node/node0/meminfo": "Node 0 MemTotal:        4810956 kB\n"
    "Node 0 MemFree:         4510048 kB\nNode 0 Inactive(file):    29004 kB\n",
} | {
    f"sys/devices/system/cpu/cpu{cpu}/{name}": text
    for cpu in (0, 1)
    for name, text in {
        "topology/core_cpus_list": f"{cpu}\n",
        "topology/thread_siblings_list": f"{cpu}\n",
        "topology/physical_package_id": "0\n",
        "cache/index0/level": "1\n",
        "cache/index0/type": "Data\n",
        "cache/index0/size": "32K\n",
        "cache/index0/shared_cpu_list": f"{cpu}\n",
        "cache/index3/level": "3\n",
        "cache/index3/type": "Unified\n",
        "cache/index3/size": "32768K\n",
        "cache/index3/shared_cpu_list": "0-1\n",
    }.items()
}

# Two sockets of two cores with two threads each; the threads of one core are n and n + 4.
TWO_SOCKETS = {
    "proc/cpuinfo": "processor\t: 0\nmodel name\t: Some Processor\n",
    "proc/meminfo": f"MemTotal: {64 * MIB} kB\nMemFree: {50 * MIB} kB\n"
    f"MemAvailable: {60 * MIB} kB\n",
    "proc/self/status": "Cpus_allowed_list:\t0-7\nMems_allowed_list:\t0-1\n",
    "sys/devices/system/cpu/online": "0-7\n",
    "sys/devices/system/node/has_memory": "0-1\n",
    "sys/devices/system/node/node0/cpulist": "0-1,4-5\n",
    "sys/devices/system/node/node0/meminfo": f"Node 0 MemTotal: {32 * MIB} kB\n"
    f"Node 0 MemFree: {20 * MIB} kB\nNode 0 Inactive(file): {5 * MIB} kB\n",
    "sys/devices/system/node/node1/cpulist": "2-3,6-7\n",
    "sys/devices/system/node/node1/meminfo": f"Node 1 MemTotal: {32 * MIB} kB\n"
    f"Node 1 MemFree: {30 * MIB} kB\nNode 1 Inactive(file): 0 kB\n",
} | {
    f"sys/devices/system/cpu/cpu{cpu}/topology/{name}": text
    for cpu in range(8)
    for name, text in {
        "thread_siblings_list": f"{cpu % 4},{cpu % 4 + 4}\n",
        "physical_package_id": f"{cpu % 4 // 2}\n",
    }.items()
}

V2_MOUNT = "25 20 0:22 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"


@pytest.fixture
def node_of(tmp_path):
    def write_and_read(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return read_node(tmp_path)

    return write_and_read


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("", ()), ("\n", ()), ("0", (0,)), ("0-3\n", (0, 1, 2, 3)), ("0,2-3,8", (0, 2, 3, 8))],
)
def test_kernel_list(text, numbers):
    assert parse_cpu_list(text) == numbers


@pytest.mark.parametrize("text", ["x", "3-1", "0-", "-1", "0-99999999999", "0-31:2/4"])
def test_what_is_no_list_of_cpus_is_refused(text):
    with pytest.raises(ValueError, match=r"is no range of CPUs|invalid literal"):
        parse_cpu_list(text)


def test_a_virtual_machine(node_of):
    node = node_of(VIRTUAL_MACHINE)
    assert node.model_name == "AMD EPYC"
    assert node.cpus_online == node.cpus_allowed == (0, 1)
    assert (node.cores_online, node.cores_allowed) == (2, 2)
    assert node.caches == (
        Cache(1, "Data", 32 * 1024, instances=2),
        Cache(3, "Unified", 32 * MIB, instances=1),
    )
    assert node.usable_cpus == node.usable_cores == 2
    assert node.memory_total_bytes == 24684084 * 1024
    # Version 1's huge numbers are no limits, and a quota of -1 is none.
    assert node.memory_bounds == (MemoryBound(24339996 * 1024, "MemAvailable"),)
    assert node.cpu_bounds == (CpuBound(2, "CPUs online"), CpuBound(2, "CPU affinity"))
    assert node.address_space_bytes is None


def test_nothing_to_read_is_absent_and_no_error(node_of):
    node = node_of({})
    assert node.model_name is None
    assert node.cores_online is None
    assert node.caches == ()
    assert node.memory_total_bytes is None
    assert node.memory_bound() is None
    assert node.usable_cores is None
    assert node.cpu_bound is None


def test_this_very_node():
    node = read_node()
    assert 1 <= (node.usable_cores or 0) <= (node.usable_cpus or 0)
    bound = node.memory_bound()
    assert bound is not None
    assert 0 < bound.available_bytes <= (node.memory_total_bytes or 0)


class TestCores:
    def test_threads_of_one_core_count_once(self, node_of):
        node = node_of(TWO_SOCKETS)
        assert node.usable_cpus == 8
        assert node.usable_cores == 4

    @pytest.mark.parametrize(
        ("allowed", "cpus", "cores"),
        [
            ("0,4", (0, 4), 1),
            ("1,3,6", (1, 3, 6), 3),
            ("0-1,6-7", (0, 1, 6, 7), 4),
            # Many kernels list what could be plugged in as allowed.
            ("0-127", (0, 1, 2, 3, 4, 5, 6, 7), 4),
        ],
    )
    def test_affinity(self, node_of, allowed, cpus, cores):
        status = f"Cpus_allowed_list:\t{allowed}\n"
        node = node_of({**TWO_SOCKETS, "proc/self/status": status})
        assert node.cpus_allowed == cpus
        assert node.usable_cpus == len(cpus)
        assert node.usable_cores == cores
        assert node.cores_online == 4

    def test_offline_cpus_do_not_count(self, node_of):
        files = {name: text for name, text in TWO_SOCKETS.items() if "/cpu5/" not in name}
        files["sys/devices/system/cpu/online"] = "0-4,6\n"
        files["sys/devices/system/cpu/cpu1/topology/thread_siblings_list"] = "1\n"
        node = node_of(files)
        assert node.cpus_online == node.cpus_allowed == (0, 1, 2, 3, 4, 6)
        assert node.usable_cpus == 6
        assert node.usable_cores == 4

    def test_without_topology_each_cpu_counts_as_a_core(self, node_of):
        files = {name: text for name, text in TWO_SOCKETS.items() if "/topology/" not in name}
        node = node_of(files)
        assert node.cores_allowed is None
        assert node.usable_cores == 8

    @pytest.mark.parametrize(
        ("quota", "cpus", "cores"), [("150000", 1, 1), ("20000", 1, 1), ("300000", 3, 3)]
    )
    def test_quota_of_version_1(self, node_of, quota, cpus, cores):
        node = node_of(
            {
                **TWO_SOCKETS,
                "proc/self/cgroup": "5:cpu,cpuacct:/slurm/job_1/step_0\n",
                "proc/self/mountinfo": "30 29 0:26 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - "
                "cgroup cgroup rw,cpu,cpuacct\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
                "sys/fs/cgroup/cpu,cpuacct/slurm/job_1/cpu.cfs_quota_us": f"{quota}\n",
                "sys/fs/cgroup/cpu,cpuacct/slurm/job_1/cpu.cfs_period_us": "100000\n",
            }
        )
        assert node.cpu_bound == CpuBound(
            int(quota) / 100000, "cpu.cfs_quota_us of cgroup /slurm/job_1"
        )
        assert (node.usable_cpus, node.usable_cores) == (cpus, cores)
        assert node.restriction() == (
            f"this process may use {cores} of the node's 4 cores (cpu.cfs_quota_us of cgroup "
            "/slurm/job_1)"
        )

    @pytest.mark.parametrize(("allowed", "told"), [("0-7", ""), ("0,2", "2 of the node's 4 cores")])
    def test_what_keeps_a_process_from_cores_is_told(self, node_of, allowed, told):
        status = {"proc/self/status": f"Cpus_allowed_list:\t{allowed}\n"}
        sentence = node_of({**TWO_SOCKETS, **status}).restriction()
        assert sentence == (f"this process may use {told} (CPU affinity)" if told else "")

    def test_a_limit_on_memory_is_told(self, node_of):
        limit = "Max address space         1073741824           1073741824           bytes     \n"
        node = node_of({**TWO_SOCKETS, "proc/self/limits": limit})
        assert node.restriction() == (
            "this process may use 1.0 of the node's 64.0 GiB of memory (address space limit "
            "(ulimit -v) times 1)"
        )

    def test_without_topology_that_is_told_of_cpus(self, node_of):
        files = {name: text for name, text in TWO_SOCKETS.items() if "/topology/" not in name}
        files["proc/self/status"] = "Cpus_allowed_list:\t0,2\n"
        assert node_of(files).restriction().startswith("this process may use 2 of the node's 8 ")

    def test_quota_of_version_2_is_the_tightest_of_all_levels(self, node_of):
        node = node_of(
            {
                **TWO_SOCKETS,
                "proc/self/cgroup": "0::/system.slice/job.scope\n",
                "proc/self/mountinfo": V2_MOUNT,
                "sys/fs/cgroup/system.slice/cpu.max": "150000 100000\n",
                "sys/fs/cgroup/system.slice/job.scope/cpu.max": "max 100000\n",
            }
        )
        assert node.cpu_bound == CpuBound(1.5, "cpu.max of cgroup /system.slice")
        assert node.usable_cores == 1


class TestMemory:
    def test_free_memory_where_the_kernel_does_not_say_available(self, node_of):
        meminfo = "MemTotal: 4000 kB\nMemFree: 1000 kB\n"
        node = node_of({**VIRTUAL_MACHINE, "proc/meminfo": meminfo})
        assert node.memory_bound() == MemoryBound(1000 * 1024, "MemFree")

    def test_limit_of_version_1_below_what_is_available(self, node_of):
        leaf = "sys/fs/cgroup/memory/job/388928bc"
        node = node_of({**VIRTUAL_MACHINE, f"{leaf}/memory.limit_in_bytes": f"{4 * GIB}\n"})
        # Of the 3817472 bytes in use 1048576 are cache that the kernel gives up.
        assert node.memory_bound().available_bytes == 4 * GIB - (3817472 - 1048576)
        assert node.memory_bound().source == "memory.limit_in_bytes of cgroup /job/388928bc"

    def test_limit_above_this_process_in_the_hierarchy(self, node_of):
        job = "sys/fs/cgroup/memory/job"
        node = node_of({**VIRTUAL_MACHINE, f"{job}/memory.limit_in_bytes": f"{4 * GIB}\n"})
        assert node.memory_bound() == MemoryBound(
            4 * GIB - 204525568, "memory.limit_in_bytes of cgroup /job"
        )

    @pytest.mark.parametrize("name", ["memory.max", "memory.high"])
    def test_limits_of_version_2(self, node_of, name):
        node = node_of(
            {
                **TWO_SOCKETS,
                "proc/self/cgroup": "0::/user.slice/job.scope\n",
                "proc/self/mountinfo": V2_MOUNT,
                "sys/fs/cgroup/user.slice/memory.max": "max\n",
                "sys/fs/cgroup/user.slice/memory.high": "max\n",
                f"sys/fs/cgroup/user.slice/job.scope/{name}": f"{8 * GIB}\n",
                "sys/fs/cgroup/user.slice/job.scope/memory.current": f"{3 * GIB}\n",
                "sys/fs/cgroup/user.slice/job.scope/memory.stat": f"anon {GIB}\n"
                f"file {2 * GIB}\nactive_file {GIB}\ninactive_file {GIB}\n",
            }
        )
        assert node.memory_bound() == MemoryBound(
            6 * GIB, f"{name} of cgroup /user.slice/job.scope"
        )

    def test_a_limit_that_is_used_up(self, node_of):
        leaf = "sys/fs/cgroup/memory/job/388928bc"
        node = node_of({**VIRTUAL_MACHINE, f"{leaf}/memory.limit_in_bytes": "1000000\n"})
        assert node.memory_bound().available_bytes == 0

    def test_a_container_that_sees_the_path_of_its_host(self, node_of):
        # Docker without a cgroup namespace: only the container's part of the tree is mounted.
        node = node_of(
            {
                **TWO_SOCKETS,
                "proc/self/cgroup": "4:memory:/docker/0123abcd\n",
                "proc/self/mountinfo": "50 49 0:32 /docker/0123abcd /sys/fs/cgroup/memory ro - "
                "cgroup cgroup rw,memory\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{GIB}\n",
                "sys/fs/cgroup/memory/memory.usage_in_bytes": "0\n",
            }
        )
        assert node.memory_bound() == MemoryBound(GIB, "memory.limit_in_bytes of cgroup /")

    @pytest.mark.parametrize("path", ["/../../job", "/elsewhere"])
    def test_a_process_outside_of_what_is_mounted(self, node_of, path):
        node = node_of(
            {
                **TWO_SOCKETS,
                "proc/self/cgroup": f"0::{path}\n",
                "proc/self/mountinfo": V2_MOUNT,
                "sys/fs/cgroup/memory.max": f"{GIB}\n",
            }
        )
        assert node.memory_bound().available_bytes == GIB

    def test_memory_of_the_numa_nodes_allowed(self, node_of):
        status = "Cpus_allowed_list:\t0-1,4-5\nMems_allowed_list:\t0\n"
        node = node_of({**TWO_SOCKETS, "proc/self/status": status})
        assert node.memory_bound() == MemoryBound(25 * GIB, "NUMA nodes allowed (0)")

    def test_numa_nodes_without_a_restriction_are_no_bound(self, node_of):
        # Node 0 has 25 GiB free and node 1 has 30, but MemAvailable counts more kinds of pages.
        assert node_of(TWO_SOCKETS).memory_bound() == MemoryBound(60 * GIB, "MemAvailable")

    def test_address_space_limit_holds_for_each_process(self, node_of):
        limits = CAPTURED_LIMITS.replace(
            "Max address space         unlimited ", "Max address space         4294967296"
        )
        node = node_of({**VIRTUAL_MACHINE, "proc/self/limits": limits})
        assert node.address_space_bytes == 4 * GIB
        assert node.memory_bound().available_bytes == 4 * GIB
        assert node.memory_bound(2) == MemoryBound(
            8 * GIB, "address space limit (ulimit -v) times 2"
        )
        assert node.memory_bound(16).source == "MemAvailable"
