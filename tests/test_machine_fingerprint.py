"""Fingerprints of a captured virtual machine and of a server in the form that the kernel documents.

``SERVER`` follows the kernel's documentation (sysfs ABI, admin-guide/pm/cpufreq.rst,
admin-guide/cgroup-v2.rst, proc(5)); it has what virtual machines lack.
"""

import json
import os
import shutil
import subprocess

import pytest

from clustergate import version
from clustergate.core.model import BadRequest
from clustergate.machine import fingerprint as module
from clustergate.machine.fingerprint import from_record, read_fingerprint, to_record
from clustergate.machine.node import SCRIPT
from tests.conftest import until

CPU = "sys/devices/system/cpu"
HARDWARE_ADDRESS = "02:00:5e:10:00:01"
SERIAL = "CZ1234567"
SERVER = (
    {
        "proc/cpuinfo": "".join(
            f"processor\t: {cpu}\nmodel name\t: Some Processor\nmicrocode\t: 0x2b000603\n"
            "flags\t\t: fpu sse2 avx avx2 fma\n\n"
            for cpu in range(4)
        ),
        "proc/meminfo": "MemTotal:       263737344 kB\n",
        "proc/cmdline": "BOOT_IMAGE=/vmlinuz-6.1 root=UUID=0a1b2c3d-0000-0000-0000-000000000000 ro "
        f"BOOTIF={HARDWARE_ADDRESS} ip=eth0:dhcp inst.ks=http://deploy:hush@192.0.2.1/ks "
        'quiet mitigations=off dyndbg="file a.c +p" spec_store_bypass_disable=off '
        "iommu.passthrough=1 spectre_v2_user=off crashkernel=1G-4G:192M,4G-64G:256M "
        "PROXY_PASSWORD=hush user=deploy agent.token=hush console=ttyS0,115200n8 "
        "site.join=c2VjcmV0IG9mIHRoZSBzaXRl "
        "-- agent --password hush\n",
        "proc/self/limits": "Limit                     Soft Limit           Hard Limit           "
        "Units     \n"
        "Max stack size            unlimited            unlimited            bytes     \n"
        "Max locked memory         65536                unlimited            bytes     \n",
        "proc/self/status": "Cpus_allowed_list:\t0-1,3\n",
        "proc/self/cgroup": "0::/user-1000.slice/job_77\n",
        "proc/self/mountinfo": "25 20 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        "sys/fs/cgroup/user-1000.slice/job_77/memory.max": "max\n",
        "sys/fs/cgroup/user-1000.slice/job_77/cpu.max": "150000 100000\n",
        "sys/fs/cgroup/user-1000.slice/memory.max": f"{64 * 2**30}\n",
        "sys/fs/cgroup/user-1000.slice/memory.high": f"{32 * 2**30}\n",
        f"{CPU}/online": "0-3\n",
        f"{CPU}/offline": "4-5\n",
        f"{CPU}/intel_pstate/no_turbo": "1\n",
        "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "512\n",
        "sys/class/dmi/id/sys_vendor": "Some Vendor\n",
        "sys/class/dmi/id/bios_version": "U46 v1.50\n",
        "sys/class/dmi/id/product_serial": f"{SERIAL}\n",
        "sys/class/net/ib0/address": f"{HARDWARE_ADDRESS}\n",
        "sys/class/net/ib0/mtu": "2044\n",
        "sys/class/net/ib0/operstate": "up\n",
        "sys/class/net/ib0/speed": "200000\n",
        "sys/class/net/ib0/device/current_link_speed": "16.0 GT/s PCIe\n",
        "sys/class/net/ib0/device/current_link_width": "16\n",
        "sys/class/net/enx02005e100002/operstate": "down\n",
        "sys/class/net/enx02005e100002/device/uevent": "DRIVER=cdc_ether\n",
        "sys/class/net/veth1a2b3c4/operstate": "up\n",
        "sys/class/net/bond0/operstate": "up\n",
        "proc/net/route": "Iface\tDestination\tGateway \nbond0\t00000000\t010200C0\n",
        "sys/class/infiniband/mlx5_0/fw_ver": "20.35.1012\n",
        "sys/class/infiniband/mlx5_0/node_guid": "0c42:a103:0000:0001\n",
        "sys/class/infiniband/mlx5_0/node_desc": "n001 HCA-1\n",
        "sys/class/infiniband/mlx5_0/ports/1/state": "4: ACTIVE\n",
        "sys/class/infiniband/mlx5_0/ports/1/rate": "200 Gb/sec (4X HDR)\n",
        "sys/module/mlx5_core/version": "5.8-2.0.3\n",
        "etc/tuned/active_profile": "hpc-compute\n",
    }
    | {
        f"{CPU}/cpufreq/policy{cpu}/{name}": text
        for cpu in range(4)
        for name, text in {
            "related_cpus": f"{cpu}\n",
            "scaling_governor": "powersave\n" if cpu == 2 else "performance\n",
            "scaling_driver": "intel_pstate\n",
            "scaling_max_freq": "3500000\n",
        }.items()
    }
    | {
        f"{CPU}/cpu{cpu}/cpuidle/state{state}/{name}": text
        for cpu in range(4)
        for state, idle in enumerate(("POLL", "C6"))
        for name, text in {
            "name": f"{idle}\n",
            "disable": f"{int(idle == 'C6' and cpu > 0)}\n",
        }.items()
    }
)
SERVER_LINKS = {
    "sys/class/net/ib0/device/driver": "../../../bus/pci/drivers/mlx5_core",
    "sys/class/infiniband/mlx5_0/device/driver": "../../../bus/pci/drivers/mlx5_core",
}


@pytest.fixture
def plant(tmp_path):
    def plant(files, links=()):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        for name, target in dict(links).items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).symlink_to(target)
        return tmp_path

    return plant


@pytest.fixture
def virtual_machine(plant, data):
    captured = json.loads((data / "machine" / "virtual-machine.json").read_text())
    return plant(captured["files"], captured["links"])


@pytest.fixture
def server(plant):
    return plant(SERVER, SERVER_LINKS)


def absent(group):
    return {name for name, value in group.items() if value is None}


def test_a_captured_virtual_machine(virtual_machine):
    state = read_fingerprint(virtual_machine)
    assert state["hardware"] == {
        "architecture": "x86_64",
        "processor": "AMD EPYC",
        "processor_model": "family 25, model 17, stepping 1",
        "virtual_machine": True,
        "sockets": 1,
        "cores": 2,
        "threads_per_core": 1,
        "cpus_online": 2,
        "cpus_offline": 0,
        "vector_instructions": [
            "sse2",
            "sse4_2",
            "avx",
            "avx2",
            "fma",
            "avx512f",
            "avx512cd",
            "avx512bw",
            "avx512dq",
            "avx512vl",
            "avx512_vnni",
            "avx512_bf16",
        ],
        "caches": [
            "L1 Data 2 x 32 KiB",
            "L1 Instruction 2 x 32 KiB",
            "L2 Unified 2 x 1024 KiB",
            "L3 Unified 1 x 32768 KiB",
        ],
        "microcode": "0x1000065",
        "memory_total_gib": 23.54,
        "numa_nodes": 1,
        "numa_cpus": ["0: 0-1"],
        "system_vendor": None,
        "system_product": None,
        "board": None,
        "bios_vendor": None,
        "bios_version": None,
        "bios_date": None,
    }
    assert absent(state["kernel"]) == {
        *("tuned_profile", "cpufreq_driver", "governor", "energy_preference", "boost", "mounts"),
        *("clock_lowest_allowed_mhz", "clock_highest_allowed_mhz", "clock_highest_possible_mhz"),
    }
    assert state["kernel"]["release"] == "6.18.44"
    assert state["kernel"]["transparent_huge_pages"] == "madvise"
    assert state["kernel"]["clocksource"] == "tsc"
    assert state["kernel"]["swappiness"] == 60
    assert state["kernel"]["idle_states"] == ["POLL", "haltpoll idle"]
    mitigations = state["kernel"]["mitigations"]
    assert isinstance(mitigations, list)
    assert mitigations[1:3] == [
        "spec_store_bypass: Vulnerable",
        "spectre_v1: Mitigation: usercopy/swapgs barriers and __user pointer sanitization",
    ]
    assert len(mitigations) == 4
    assert state["limits"]["locked_memory_bytes"] == 8388608
    assert state["limits"]["cpu_time_s"] == "unlimited"
    assert absent(state["limits"]) == {"cgroup_cpus", "cgroup_memory_bytes"}
    assert state["network"] == {
        "tcp_congestion_control": "bbr",
        "tcp_receive_buffer": "4096 131072 33554432",
        "tcp_send_buffer": "4096 16384 4194304",
        "socket_receive_buffer_max_bytes": 4194304,
        "socket_send_buffer_max_bytes": 4194304,
        "queueing_discipline": "pfifo_fast",
        "interface.eth0.state": "up",
        "interface.eth0.speed_mbit_s": None,
        "interface.eth0.mtu_bytes": 1400,
        "interface.eth0.driver": "virtio_net",
        "interface.eth0.driver_version": None,
        "interface.eth0.pci_link": None,
        "infiniband": None,
    }
    assert state["software"]["operating_system"] == "Debian GNU/Linux 12 (bookworm)"
    assert state["software"]["clustergate"] == version()


def test_clocks_of_a_server(server):
    kernel = read_fingerprint(server)["kernel"]
    assert kernel["governor"] == "performance (0-1,3), powersave (2)"
    assert kernel["cpufreq_driver"] == "intel_pstate"
    assert kernel["clock_highest_allowed_mhz"] == 3500
    assert kernel["clock_lowest_allowed_mhz"] is None
    assert kernel["boost"] == "off"
    assert kernel["idle_states"] == ["POLL", "C6 (disabled on 1-3)"]
    assert kernel["huge_pages"] == ["512 of 2048kB"]
    assert kernel["tuned_profile"] == "hpc-compute"


def test_threads_and_offline_cpus_of_two_sockets(plant):
    files = {f"{CPU}/online": "0-4,6\n", f"{CPU}/offline": "5,7\n"}
    for cpu in (0, 1, 2, 3, 4, 6):
        siblings = str(cpu) if cpu in (1, 3) else f"{cpu % 4},{cpu % 4 + 4}"
        files[f"{CPU}/cpu{cpu}/topology/thread_siblings_list"] = f"{siblings}\n"
        files[f"{CPU}/cpu{cpu}/topology/physical_package_id"] = f"{cpu % 4 // 2}\n"
    for numa, cpus in ((0, "0-1,4"), (1, "2-3,6")):
        files[f"sys/devices/system/node/node{numa}/cpulist"] = f"{cpus}\n"
    hardware = read_fingerprint(plant(files))["hardware"]
    assert hardware["sockets"] == hardware["threads_per_core"] == hardware["numa_nodes"] == 2
    assert hardware["cores"] == 4
    assert (hardware["cpus_online"], hardware["cpus_offline"]) == (6, 2)
    assert hardware["numa_cpus"] == ["0: 0-1,4", "1: 2-3,6"]


def test_sockets_that_the_firmware_does_not_tell(plant):
    root = plant({f"{CPU}/online": "0\n", f"{CPU}/cpu0/topology/physical_package_id": "-1\n"})
    assert read_fingerprint(root)["hardware"]["sockets"] is None


def test_mounts_tell_neither_servers_nor_users(plant):
    mounts = """\
/dev/sda1 / xfs rw,relatime 0 0
proc /proc proc rw 0 0
tmpfs /run/user/1000 tmpfs rw,size=4k 0 0
tmpfs /dev/shm tmpfs rw,size=24684084k,mode=1777 0 0
auto.home /home autofs rw 0 0
nas7:/home/alice /home/alice nfs4 rw,vers=4.2,clientaddr=192.0.2.7,addr=192.0.2.1 0 0
192.0.2.9@o2ib:/work /work lustre rw,flock 0 0
nas7:/users/bob /users/bob nfs rw,addr=192.0.2.1 0 0
"""
    root = plant({"proc/self/mounts": mounts})
    assert read_fingerprint(root)["kernel"]["mounts"] == [
        "/ xfs rw,relatime",
        "/dev/shm tmpfs rw,mode=1777",
        "/users/(hidden) nfs rw",
        "/work lustre rw,flock",
    ]


def test_of_several_processes_on_a_node_one_says_it(virtual_machine, tmp_path):
    folder = tmp_path / "nodes"
    folder.mkdir()
    command = ["sh", SCRIPT, virtual_machine, folder]
    for _ in range(2):
        assert subprocess.run(command, check=True, capture_output=True).stdout == b""
    (said,) = folder.iterdir()
    assert said.name == os.uname().nodename
    assert said.stat().st_mode & 0o077 == 0
    groups = read_fingerprint(virtual_machine)
    own = [module._own_software()]
    told = module.parse_state(said.read_text())
    assert {**groups, "software": {}} == {**told, "software": {}}
    assert groups["software"] == {**told["software"], **own[0]}


@pytest.mark.parametrize("awk", ["mawk", "gawk", "busybox"])
def test_every_awk_says_the_same(server, tmp_path, awk, monkeypatch):
    if not (program := shutil.which(awk)):
        pytest.skip(f"no {awk} here")
    before = read_fingerprint(server)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "awk").symlink_to(program)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert read_fingerprint(server) == before


def test_ports_of_an_adapter_tell_their_gids_by_kinds(server, plant):
    types = "sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types"
    plant({f"{types}/{n}": f"{kind}\n" for n, kind in enumerate(["IB/RoCE v1", "RoCE v2"] * 2)})
    network = read_fingerprint(server)["network"]
    assert network["infiniband.mlx5_0 port 1.gids"] == "2 IB/RoCE v1, 2 RoCE v2"


def test_clocks_that_several_cpus_share(plant):
    root = plant(
        {
            f"{CPU}/cpufreq/policy0/related_cpus": "0 1 2 3\n",
            f"{CPU}/cpufreq/policy0/scaling_governor": "schedutil\n",
            f"{CPU}/cpufreq/policy4/scaling_governor": "performance\n",
            f"{CPU}/cpufreq/boost": "1\n",
        }
    )
    kernel = read_fingerprint(root)["kernel"]
    assert kernel["governor"] == "schedutil (0-3), performance (4)"
    assert kernel["boost"] == "on"


def test_microcode_that_differs_between_cpus(plant):
    entries = "processor: 0\nmicrocode: 0x1\n\nprocessor: 1\nmicrocode: 0x2\n"
    root = plant({"proc/cpuinfo": entries})
    assert read_fingerprint(root)["hardware"]["microcode"] == "0x1 (0), 0x2 (1)"


def test_limits_of_a_server(server):
    limits = read_fingerprint(server)["limits"]
    assert limits["stack_size_bytes"] == "unlimited"
    assert limits["locked_memory_bytes"] == 65536
    assert limits["open_files"] is None
    assert limits["cpu_affinity"] == "0-1,3"
    assert limits["cgroup_cpus"] == 1.5
    assert limits["cgroup_memory_bytes"] == 32 * 2**30


@pytest.mark.parametrize(
    ("ancestors", "group"),
    [
        (["hydra_pmi_proxy", "bash", "sshd"], "login_limits"),
        (["prted", "systemd"], "login_limits"),
        (["hydra_pmi_proxy", "bash", "slurmstepd", "sshd"], "limits"),
        (["bash", "login"], "limits"),
    ],
)
def test_limits_of_a_login_are_not_those_of_a_job(server, ancestors, group):
    # The job's first node has those of its batch job, the others those of ssh.
    parents = [str(100 + at) for at in range(len(ancestors))]
    for child, parent, name in zip(
        ["self", *parents], [*parents, "1"], ["sh", *ancestors], strict=False
    ):
        folder = server / "proc" / child
        folder.mkdir(exist_ok=True)
        (folder / "comm").write_text(f"{name}\n")
        with (folder / "status").open("a") as status:
            status.write(f"PPid:\t{parent}\n")
    state = read_fingerprint(server)
    assert state[group]["locked_memory_bytes"] == 65536
    assert ("locked_memory_bytes" in state["limits"]) == (group == "limits")
    assert state["limits"]["cgroup_cpus"] == 1.5


def test_memory_limit_of_version_1_cgroups(virtual_machine):
    path = virtual_machine / "sys/fs/cgroup/memory/job/1/memory.limit_in_bytes"
    path.parent.mkdir(parents=True)
    path.write_text(f"{2**30}\n")
    assert read_fingerprint(virtual_machine)["limits"]["cgroup_memory_bytes"] == 2**30


def test_devices_of_a_server(server):
    network = read_fingerprint(server)["network"]
    assert network["interface.ib0.mtu_bytes"] == 2044
    assert network["interface.ib0.speed_mbit_s"] == 200000
    assert network["interface.ib0.pci_link"] == "16.0 GT/s PCIe x16"
    assert network["infiniband.mlx5_0.firmware"] == "20.35.1012"
    assert network["infiniband.mlx5_0.driver"] == "mlx5_core"
    assert network["infiniband.mlx5_0.driver_version"] == "5.8-2.0.3"
    assert network["infiniband.mlx5_0 port 1.state"] == "4: ACTIVE"
    assert network["infiniband.mlx5_0 port 1.rate"] == "200 Gb/sec (4X HDR)"


def test_interfaces_of_containers_are_left_out(server):
    network = read_fingerprint(server)["network"]
    states = {name for name in network if name.endswith(".state") and "interface" in name}
    assert states == {
        "interface.bond0.state",
        "interface.enx(address hidden).state",
        "interface.ib0.state",
    }


def test_command_line_keeps_settings_and_hides_what_identifies(server):
    assert read_fingerprint(server)["kernel"]["command_line"] == [
        "root=(hidden)",
        "ro",
        "BOOTIF=(hidden)",
        "ip=(hidden)",
        "inst.ks=(hidden)",
        "quiet",
        "mitigations=off",
        'dyndbg="file a.c +p"',
        "spec_store_bypass_disable=off",
        "iommu.passthrough=1",
        "spectre_v2_user=off",
        "crashkernel=1G-4G:192M,4G-64G:256M",
        "PROXY_PASSWORD=(hidden)",
        "user=(hidden)",
        "agent.token=(hidden)",
        "console=ttyS0,115200n8",
        "site.join=(hidden)",
    ]


def test_what_the_loader_preloads_is_told(server):
    assert read_fingerprint(server)["software"]["preloaded_libraries"] == []
    (server / "etc/ld.so.preload").write_text("# XALT\n/opt/a.so:/opt/b.so\n  /opt/c\x1b.so d.so\n")
    told = read_fingerprint(server)["software"]["preloaded_libraries"]
    assert told == ["/opt/a.so", "/opt/b.so", "d.so"]


def test_nothing_identifies_the_machine_or_its_users(server, monkeypatch):
    monkeypatch.setenv("SITE_SECRET", "hush")
    text = json.dumps(read_fingerprint(server))
    for private in (HARDWARE_ADDRESS, "02005e100002", SERIAL, "0c42:a103", "n001"):
        assert private not in text
    for private in ("hush", "192.0.2.1", "0a1b2c3d", "user-1000", "job_77"):
        assert private not in text


def test_an_empty_root_is_all_absent(tmp_path):
    state = read_fingerprint(tmp_path)
    assert {name for name, value in state["hardware"].items() if value is not None} == {
        "architecture"
    }
    for group in ("kernel", "limits", "network"):
        assert absent(state[group]) == set(state[group])
    assert "interfaces" in state["network"]
    assert state["software"]["operating_system"] is None


def flat(state):
    return {f"{group}.{name}": value for group in state for name, value in state[group].items()}


@pytest.mark.parametrize(
    ("name", "gone"),
    [
        (
            "proc/cpuinfo",
            "hardware.processor hardware.processor_model hardware.microcode "
            "hardware.vector_instructions hardware.virtual_machine",
        ),
        ("proc/meminfo", "hardware.memory_total_gib"),
        ("proc/cmdline", "kernel.command_line"),
        ("proc/sys/kernel/osrelease", "kernel.release"),
        ("proc/sys/vm/swappiness", "kernel.swappiness"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "kernel.transparent_huge_pages"),
        ("sys/devices/system/clocksource/clocksource0/current_clocksource", "kernel.clocksource"),
        (
            f"{CPU}/online",
            "hardware.cpus_online hardware.cpus_offline hardware.caches "
            "hardware.sockets hardware.cores hardware.threads_per_core",
        ),
        ("sys/class/net/eth0/mtu", "network.interface.eth0.mtu_bytes"),
        ("sys/class/net/eth0/device/driver", "network.interface.eth0.driver"),
        ("proc/sys/net/ipv4/tcp_congestion_control", "network.tcp_congestion_control"),
        ("etc/os-release", "software.operating_system"),
    ],
)
def test_a_missing_file_makes_its_own_figures_absent_and_no_others(virtual_machine, name, gone):
    whole = flat(read_fingerprint(virtual_machine))
    (virtual_machine / name).unlink()
    rest = flat(read_fingerprint(virtual_machine))
    assert rest.keys() == whole.keys()
    changed = {name for name in whole if rest[name] != whole[name]}
    assert changed == set(gone.split())
    assert all(rest[name] is None for name in changed)


def test_no_limits_at_all(virtual_machine):
    (virtual_machine / "proc/self/limits").unlink()
    limits = read_fingerprint(virtual_machine)["limits"]
    assert {name for name, value in limits.items() if value is not None} == {"cpu_affinity"}


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfe\x00\x01" * 64,
        b"\x1b[31mred\x1b[0m\n",
        b"1:2 - 3\n",
        b"a\nb: c\n",
        b"",
        b"\n",
        b"9" * 5000,
        b"1 0\n",
    ],
    ids=["binary", "escape", "fields", "lines", "empty", "newline", "digits", "zero"],
)
def test_damaged_files_raise_nothing_and_print_as_lines(plant, content):
    root = plant(dict.fromkeys(SERVER, content), SERVER_LINKS)
    for group in read_fingerprint(root).values():
        for value in group.values():
            for line in value if isinstance(value, list) else [value]:
                assert not isinstance(line, str) or line.isprintable()


def test_binary_garbage_is_absent(plant):
    root = plant(dict.fromkeys(SERVER, b"\xff\xfe\x00\x01" * 64))
    state = read_fingerprint(root)
    assert absent(state["limits"]) == set(state["limits"])
    assert absent(state["kernel"]) == set(state["kernel"])


def test_more_than_a_page_is_no_attribute(plant):
    root = plant({"proc/sys/kernel/osrelease": "6" * 4096, "proc/sys/kernel/version": "1" * 4097})
    kernel = read_fingerprint(root)["kernel"]
    assert kernel["release"] == "6" * 4096
    assert kernel["version"] is None


def test_a_forbidden_file_is_absent(server):
    path = server / "etc/tuned/active_profile"
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    assert read_fingerprint(server)["kernel"]["tuned_profile"] is None


def test_a_folder_in_place_of_a_file_is_absent(plant):
    root = plant({"proc/cmdline/file": "", "sys/class/dmi/id/sys_vendor/file": ""})
    state = read_fingerprint(root)
    assert state["kernel"]["command_line"] is None
    assert state["hardware"]["system_vendor"] is None


# --- software ---------------------------------------------------------------------------------


@pytest.fixture
def compiler(tmp_path, monkeypatch):
    def compiler(script):
        program = tmp_path / "bin" / "cc"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")

    return compiler


def test_compiler_says_its_version(compiler, tmp_path):
    compiler("echo 'cc 12.2.0'; echo 'Copyright'")
    assert read_fingerprint(tmp_path)["software"]["compiler"] == "cc 12.2.0"


@pytest.mark.parametrize("script", ["echo broken; exit 1", "exit 0", "kill -9 $$"])
def test_compiler_that_fails_is_absent(compiler, tmp_path, script):
    compiler(script)
    assert read_fingerprint(tmp_path)["software"]["compiler"] is None


def test_compiler_that_hangs_is_ended_with_all_it_started(compiler, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_PROGRAM_TIMEOUT_S", 1.0)
    compiler(f"sleep infinity & echo $! > {tmp_path}/pid; wait")
    assert read_fingerprint(tmp_path)["software"]["compiler"] is None
    child = int((tmp_path / "pid").read_text())
    until(lambda: not is_running(child), lambda: "what the compiler started is still there")


def is_running(process):
    try:
        with open(f"/proc/{process}/stat") as file:
            # An orphan that nobody has waited for yet is dead all the same.
            return file.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_no_programs_at_all(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    software = read_fingerprint(tmp_path)["software"]
    assert software["compiler"] is software["clustergate_checkout"] is None


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_checkout_is_described(tmp_path, monkeypatch):
    def git(*arguments):
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", "-C", tmp_path, *identity, *arguments], check=True)

    git("init", "--quiet")
    (tmp_path / "file").write_text("one")
    git("add", "file")
    git("commit", "--quiet", "--message", "One")
    git("tag", "v1")
    monkeypatch.setattr(module, "checkout", lambda: tmp_path)
    # As in a git hook: the variable speaks of another repository.
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert read_fingerprint(tmp_path)["software"]["clustergate_checkout"] == "v1"
    (tmp_path / "file").write_text("two")
    assert read_fingerprint(tmp_path)["software"]["clustergate_checkout"] == "v1-dirty"


def test_an_installed_package_has_no_checkout(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "checkout", lambda: tmp_path)
    assert read_fingerprint(tmp_path)["software"]["clustergate_checkout"] is None


# --- records ----------------------------------------------------------------------------------


def test_a_record_survives_json(virtual_machine, server):
    for root in (virtual_machine, server):
        state = read_fingerprint(root)
        assert from_record(json.loads(json.dumps(to_record(state))), "file") == state


def test_a_record_without_schema_is_of_the_first():
    assert from_record({"fingerprint": {"kernel": {"release": "6.1"}}}, "file") == {
        "kernel": {"release": "6.1"}
    }


@pytest.mark.parametrize(
    "content",
    [
        None,
        [],
        "text",
        {},
        {"fingerprint": []},
        {"fingerprint": {"kernel": "6.1"}},
        {"fingerprint": {"kernel": {"release": {"major": 6}}}},
        {"fingerprint": {"kernel": {"command_line": [1]}}},
        {"fingerprint": {"kernel": {"release": "\x1b[2J"}}},
        {"fingerprint": {"kernel": {"\ud800": 1}}},
    ],
)
def test_anything_else_is_no_record(content):
    with pytest.raises(BadRequest, match=r"^A\.json does not hold the state of a node; ") as caught:
        from_record(content, "A.json")
    assert caught.value.exit_status == 1


def test_a_record_of_another_version():
    with pytest.raises(BadRequest, match=r"^A\.json has schema 2 and .* reads schema 1; "):
        from_record({"schema": 2, "fingerprint": {}}, "A.json")
