"""The schedulers of a virtual cluster: Slurm from Debian's packages, OpenPBS from its sources."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

STEP_SECONDS = 120
"""What a command, or a daemon that starts, may take at most: the machine may be a busy one."""
BUILD_SECONDS = 3600
"""What a step of a build may take at most."""
HEAD = "head"
HEAD_HOST = "virtual-cluster"
"""What the head calls itself: ci/virtual_cluster.py knows it by this name."""
LIBRARY_FOLDERS = ("/usr/lib", "/usr/lib64")


class ClusterError(Exception):
    """The cluster cannot be, or cannot do what was asked: one sentence."""


class Cluster(Protocol):
    """What a scheduler needs of the virtual cluster that it runs on."""

    name: str
    folder: Path

    def nodes(self) -> list[str]:
        """Return the names of the nodes, without the head."""

    def on(self, node: str, *words: str, check: bool = True) -> str:
        """Run a short command on a node and return what it printed."""

    def runs(self, node: str, *words: str) -> bool:
        """Tell whether a short command on a node succeeds."""

    def daemon(self, node: str, *words: str) -> None:
        """Start a daemon on a node: one that goes to the background by itself."""

    def stop(self, node: str, daemon: str) -> None:
        """Kill a daemon of a node by its file /run/DAEMON.pid."""


def call(
    words: Sequence[str],
    *,
    check: bool = True,
    log: Path | None = None,
    seconds: float = STEP_SECONDS,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Run a command to its end and return what it printed.

    Raises ClusterError with its last words when it fails or takes too long.
    """
    try:
        with open(log or os.devnull, "ab") as kept:
            ended = subprocess.run(
                words,
                stdin=subprocess.DEVNULL,
                # A daemon keeps the pipe that it inherits, and nobody would see its end.
                stdout=kept if log else subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=seconds,
                cwd=folder,
                env=environment,
                check=False,
            )
    except FileNotFoundError:
        raise ClusterError(f"there is no {words[0]} on PATH") from None
    except subprocess.TimeoutExpired:
        raise ClusterError(f"`{' '.join(words)}` took more than {seconds:g} s") from None
    said = log.read_text(errors="replace") if log else ended.stdout.decode(errors="replace")
    if check and ended.returncode:
        last = (said.strip().splitlines() or ["it printed nothing"])[-1]
        raise ClusterError(f"`{' '.join(words)}` failed ({ended.returncode}): {last}")
    return said


def wait_until(what: str, condition: Callable[[], bool], seconds: float = STEP_SECONDS) -> None:
    """Wait for a condition; raise ClusterError that says what did not happen."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise ClusterError(f"{what} did not happen within {seconds:.0f} s")
        time.sleep(0.05)


def lacking_packages(
    programs: Mapping[str, Sequence[str]], files: Mapping[str, Sequence[str]]
) -> list[str]:
    """Return the packages of which a program is not on PATH, or none of the files is there."""
    lacking = [p for p, names in programs.items() if not all(map(shutil.which, names))]
    return lacking + [
        package
        for package, patterns in files.items()
        if not any(any(Path("/").glob(pattern.lstrip("/"))) for pattern in patterns)
    ]


class Slurm:
    """A real Slurm with accounting, from Debian's packages."""

    packages = {
        "munge": ["munged"],
        "slurm-wlm": ["slurmctld", "slurmd", "sbatch", "srun", "sacct"],
        "slurmdbd": ["slurmdbd"],
        "mariadb-server": ["mariadbd", "mariadb-install-db"],
    }
    # What holds no program: that by which slurmdbd speaks to MariaDB, and srun to Open MPI.
    files = {
        "slurm-wlm-mysql-plugin": [
            f"{lib}/*/slurm*/accounting_storage_mysql.so" for lib in LIBRARY_FOLDERS
        ],
        "libpmix-dev": [f"{lib}/*/pmix*/lib/libpmix.so" for lib in LIBRARY_FOLDERS],
    }
    lists = "sinfo"
    node_daemon = "slurmd"
    of_head = ("restart-slurmctld", "accounting-down", "munge-down")
    path: tuple[str, ...] = ()
    _munge_socket = "/run/munge/munge.socket.2"
    _database_socket = "/run/mysqld/mysqld.sock"

    def __init__(self, cluster: Cluster, prefix: str = "") -> None:
        self.cluster = cluster

    @property
    def faults(self) -> Mapping[str, Callable[[str, str], object]]:
        """What else than a node itself can break, by a node and a value."""
        cluster = self.cluster
        return {
            "drain": lambda node, value: self._update(
                node, "DRAIN", f"Reason={value or 'a fault on purpose'}"
            ),
            "kill-slurmd": lambda node, _: cluster.stop(node, "slurmd"),
            "restart-slurmctld": lambda *_: self._restart_controller(),
            "accounting-down": lambda *_: cluster.stop(HEAD, "slurmdbd"),
            "munge-down": lambda *_: cluster.stop(HEAD, "munge/munged"),
        }

    def write_files(self, cpus: int, threads: int) -> None:
        """Write the configuration into the cluster's folder."""
        folder = self.cluster.folder
        for name in ("munge", "slurm", "spool", "database"):
            (folder / name).mkdir()
        for node in (HEAD, *self.cluster.nodes()):
            (folder / "spool" / node).mkdir()
        (folder / "munge").chmod(0o755)
        shutil.chown(folder / "database", "mysql", "mysql")
        key = folder / "munge" / "key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        (folder / "slurm" / "slurm.conf").write_text(self._slurm_conf(cpus, threads))
        accounting = folder / "slurm" / "slurmdbd.conf"
        accounting.write_text(
            f"DbdHost={HEAD_HOST}\nSlurmUser=root\nAuthType=auth/munge\nPidFile=/run/slurmdbd.pid\n"
            f"LogFile={folder}/log/slurmdbd.log\nStorageType=accounting_storage/mysql\n"
            "StorageHost=localhost\nStorageUser=root\nStorageLoc=slurm_acct_db\n"
        )
        accounting.chmod(0o600)

    def prepare(self, node: str) -> None:
        """Give the namespaces of a node what the daemons look for."""
        folder = self.cluster.folder
        call(["mount", "--bind", str(folder / "slurm"), "/etc/slurm"])
        for name in ("munge", "mysqld"):
            Path("/run", name).mkdir()
        shutil.chown("/run/mysqld", "mysql", "mysql")
        Path(self._munge_socket).symlink_to(folder / "munge" / "socket")

    def start_head(self) -> None:
        """Start what a cluster has once: munge, the database, accounting, the controller."""
        cluster = self.cluster
        self._start_munge()
        own = ["--no-defaults", "--user=mysql", f"--datadir={cluster.folder / 'database'}"]
        cluster.on(
            HEAD,
            *("mariadb-install-db", *own, "--skip-test-db"),
            "--auth-root-authentication-method=socket",
        )
        words = ["mariadbd", *own, f"--socket={self._database_socket}", "--skip-networking"]
        words += [f"--log-error={cluster.folder / 'log' / 'mariadbd.log'}"]
        words += ["--innodb-buffer-pool-size=64M", "--innodb-log-file-size=32M"]
        words += ["--innodb-lock-wait-timeout=900"]
        cluster.daemon(HEAD, "setsid", "--fork", *words)
        ask = ["mariadb", "--no-defaults", f"--socket={self._database_socket}", "-e", "select 1"]
        wait_until(
            "the start of MariaDB", lambda: "1" in cluster.on(HEAD, *ask, check=False).split()
        )
        self._start_accounting()
        cluster.daemon(HEAD, "slurmctld", "-i")

    def start_node(self, node: str) -> None:
        """Start the daemon of a node."""
        self.cluster.daemon(node, "slurmd")

    def is_ready(self, node: str) -> bool:
        """Tell whether Slurm would give a node to a job."""
        said = self.cluster.on(HEAD, "sinfo", "-h", "-n", node, "-o", "%T", check=False)
        # The last two are of one within a reservation.
        return said.strip() in {"idle", "mixed", "allocated", "maint", "reserved"}

    def resume(self, node: str) -> None:
        """Let jobs have a node again."""
        words = [f"NodeName={node}", "State=RESUME"]
        self.cluster.on(HEAD, "scontrol", "update", *words, check=False)

    def mend_head(self) -> None:
        """Start what was killed on the head."""
        if not self.cluster.runs(HEAD, "test", "-e", "/run/munge/munged.pid"):
            self._start_munge()
        if not self.cluster.runs(HEAD, "test", "-e", "/run/slurmdbd.pid"):
            self._start_accounting()

    def _start_munge(self) -> None:
        """Start munge, which all nodes ask through the shared file system."""
        munge = self.cluster.folder / "munge"
        self.cluster.daemon(
            HEAD,
            *("munged", f"--key-file={munge / 'key'}", f"--socket={munge / 'socket'}"),
            *(f"--log-file={munge / 'log'}", f"--seed-file={munge / 'seed'}"),
            "--pid-file=/run/munge/munged.pid",
        )

    def _start_accounting(self) -> None:
        """Start slurmdbd and wait until it answers."""
        self.cluster.daemon(HEAD, "slurmdbd")
        wait_until(
            "the start of slurmdbd",
            lambda: "Cluster" in self.cluster.on(HEAD, "sacctmgr", "show", "cluster", check=False),
        )

    def _restart_controller(self) -> None:
        """Let the controller end in good order and start again from its saved state."""
        self.cluster.on(HEAD, "scontrol", "shutdown", "slurmctld")
        alive = ["sh", "-c", 'test -f /run/slurmctld.pid && kill -0 "$(cat /run/slurmctld.pid)"']
        wait_until("the end of slurmctld", lambda: not self.cluster.runs(HEAD, *alive))
        self.cluster.daemon(HEAD, "slurmctld")

    def _update(self, node: str, state: str, *more: str) -> None:
        """Give a node another state."""
        words = [f"NodeName={node}", f"State={state}", *more]
        self.cluster.on(HEAD, "scontrol", "update", *words)

    def _slurm_conf(self, cpus: int, threads: int) -> str:
        """Return slurm.conf.

        The cluster's name is new each time: job numbers begin anew with the state folder, and
        accounting would answer with an older job of the same number.
        """
        folder, nodes = self.cluster.folder, self.cluster.nodes()
        lines = [
            f"ClusterName={self.cluster.name}{secrets.token_hex(4)}",
            f"SlurmctldHost={HEAD_HOST}",
            "SlurmUser=root",
            "SlurmdUser=root",
            "AuthType=auth/munge",
            "CredType=cred/munge",
            f"StateSaveLocation={folder}/spool/controller",
            f"SlurmdSpoolDir={folder}/spool/%n",
            # One each: srun's pmix keeps files in it whose names do not tell the node.
            f"TmpFS={folder}/tmp/%n",
            "SlurmctldPidFile=/run/slurmctld.pid",
            "SlurmdPidFile=/run/slurmd.pid",
            f"SlurmctldLogFile={folder}/log/slurmctld.log",
            f"SlurmdLogFile={folder}/log/slurmd-%n.log",
            # No plugin that wants cgroups of its own, or binds: the nodes share the cores.
            "ProctrackType=proctrack/linuxproc",
            "TaskPlugin=task/none",
            "JobAcctGatherType=jobacct_gather/linux",
            "SwitchType=switch/none",
            "MpiDefault=none",
            "ReturnToService=2",
            "SchedulerType=sched/backfill",
            "SelectType=select/cons_tres",
            "SelectTypeParameters=CR_Core",
            "SlurmdParameters=config_overrides",
            "AccountingStorageType=accounting_storage/slurmdbd",
            f"AccountingStorageHost={HEAD_HOST}",
            "AccountingStorageEnforce=associations,limits,qos",
            "SlurmdTimeout=10",
            "KillWait=2",
            "PropagateResourceLimits=NONE",
            f"NodeName=n[1-{len(nodes)}] CPUs={cpus} Sockets=1 "
            f"CoresPerSocket={cpus // threads} ThreadsPerCore={threads} "
            "RealMemory=2000 State=UNKNOWN",
            f"PartitionName=main Nodes=n[1-{len(nodes)}] Default=YES MaxTime=INFINITE State=UP",
        ]
        return "\n".join(lines) + "\n"


class Pbs:
    """A real OpenPBS, built once from an archive of its sources: Debian has no package of it."""

    # What builds it, and the database of its server.
    packages = {
        **{name: [name] for name in ("gcc", "make", "autoconf", "automake", "swig")},
        "g++": ["g++"],
        "libtool": ["libtoolize"],
        "pkg-config": ["pkg-config"],
        "postgresql": ["pg_lsclusters"],
    }
    files = {
        package: [f"/usr/include/{name}", f"/usr/include/*-linux-gnu/{name}"]
        for package, name in {
            "libhwloc-dev": "hwloc.h",
            "libx11-dev": "X11/Xlib.h",
            "libxt-dev": "X11/Intrinsic.h",
            "libedit-dev": "histedit.h",
            "libncurses-dev": "ncurses.h",
            "libpq-dev": "postgresql/libpq-fe.h",
            "python3-dev": "python3*/Python.h",
            "tcl-dev": "tcl*/tcl.h",
            "tk-dev": "tcl*/tk.h",
            "libexpat1-dev": "expat.h",
            "libssl-dev": "openssl/ssl.h",
            "libical-dev": "libical/ical.h",
            "libcjson-dev": "cjson/cJSON.h",
        }.items()
    }
    lists = "pbsnodes -aS"
    node_daemon = "pbs_mom"
    of_head = ("restart-pbs_server",)
    # Where each node has its own: the same path on each, below folders that root alone may write.
    home, conf = Path("/run/pbs"), Path("/run/pbs.conf")
    cache = Path("/var/cache/clustergate")
    # As PBS's own set-up makes them, with the access that its daemons insist on.
    _folders = {
        **dict.fromkeys(("spool", "undelivered"), 0o1777),
        **dict.fromkeys(("server_logs", "sched_logs", "comm_logs", "mom_logs", "aux"), 0o755),
        **dict.fromkeys(("server_priv", "sched_priv", "mom_priv", "checkpoint"), 0o750),
        **dict.fromkeys(("server_priv/accounting", "server_priv/jobs"), 0o750),
        **dict.fromkeys(("server_priv/users", "server_priv/hooks/tmp"), 0o750),
        **dict.fromkeys(("mom_priv/hooks/tmp", "mom_priv/jobs"), 0o750),
    }

    def __init__(self, cluster: Cluster, prefix: str = "") -> None:
        self.cluster, self.prefix = cluster, Path(prefix)

    @property
    def path(self) -> tuple[str, ...]:
        """Return the folders of its programs."""
        return str(self.prefix / "bin"), str(self.prefix / "sbin")

    @property
    def faults(self) -> Mapping[str, Callable[[str, str], object]]:
        """What else than a node itself can break, by a node and a value."""
        return {
            "drain": lambda node, value: self.cluster.on(
                HEAD, "pbsnodes", "-o", "-C", value or "a fault on purpose", node
            ),
            "kill-pbs_mom": lambda node, _: self.cluster.stop(node, "pbs_mom"),
            "restart-pbs_server": lambda *_: self._restart_server(),
        }

    @classmethod
    def built(cls, archive: Path) -> Path:
        """Return where OpenPBS of an archive is installed; build it unless it was built before."""
        if not archive.is_file():
            raise ClusterError(f"there is no archive {archive} of OpenPBS' sources")
        recipe = json.dumps([str(cls.home), str(cls.conf), "1"])
        with archive.open("rb") as content:
            key = hashlib.sha256(content.read() + recipe.encode()).hexdigest()[:16]
        prefix = cls.cache / f"openpbs-{key}"
        cls.cache.mkdir(parents=True, exist_ok=True)
        with open(cls.cache / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not prefix.is_dir():
                cls._build(archive, prefix)
        return prefix

    @classmethod
    def _build(cls, archive: Path, prefix: Path) -> None:
        print(f"building OpenPBS of {archive.name} (minutes, once)", flush=True)
        # Python's headers are the system's: another Python on PATH would be mixed with them.
        environment = {**os.environ, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
        with tempfile.TemporaryDirectory(prefix="openpbs-", dir=cls.cache) as scratch:
            folder = Path(scratch)
            call(["tar", "-xf", str(archive.resolve()), "-C", scratch], seconds=BUILD_SECONDS)
            (found, *_) = [*folder.glob("autogen.sh"), *folder.glob("*/autogen.sh"), None]
            if found is None:
                raise ClusterError(f"{archive} has no autogen.sh: it is no source of OpenPBS")
            configured = [f"--prefix={prefix}", f"--with-pbs-server-home={cls.home}"]
            configured += [f"--with-pbs-conf-file={cls.conf}"]
            log = cls.cache / "build.log"
            log.unlink(missing_ok=True)
            jobs = f"-j{len(os.sched_getaffinity(0))}"
            staged = folder / "staged"
            for words in (
                ["./autogen.sh"],
                ["./configure", *configured],
                ["make", jobs],
                ["make", "install", f"DESTDIR={staged}"],
            ):
                try:
                    call(
                        words,
                        log=log,
                        seconds=BUILD_SECONDS,
                        folder=found.parent,
                        environment=environment,
                    )
                except ClusterError as error:
                    said = log.read_text(errors="replace").splitlines()
                    first = next((line for line in said if " error: " in line), str(error))
                    raise ClusterError(f"OpenPBS could not be built: {first} ({log})") from None
            # Whole, or not there.
            (staged / prefix.relative_to("/")).rename(prefix)

    def write_files(self, cpus: int, threads: int) -> None:
        """Write the home of each node's daemons; ``cpus`` are what PBS calls ncpus."""
        self._cpus = cpus
        # As an installation does for login shells: Intel MPI looks for pbsdsh on PATH.
        profile = self.cluster.folder / "profile.d"
        shutil.copytree("/etc/profile.d", profile)
        (profile / "pbs.sh").write_text(f'PATH="$PATH:{":".join(self.path)}"\n')
        for node in (HEAD, *self.cluster.nodes()):
            self._write_home(self.cluster.folder / "pbs" / node)

    def prepare(self, node: str) -> None:
        """Give the namespaces of a node what the daemons look for."""
        Path("/run").chmod(0o755)
        self.home.mkdir()
        call(["mount", "--bind", str(self.cluster.folder / "pbs" / node), str(self.home)])
        call(["mount", "--bind", str(self.cluster.folder / "profile.d"), "/etc/profile.d"])
        here = int(node == HEAD)
        self.conf.write_text(
            f"PBS_EXEC={self.prefix}\nPBS_HOME={self.home}\nPBS_SERVER={HEAD}\n"
            f"PBS_LEAF_NAME={node}\nPBS_START_SERVER={here}\nPBS_START_SCHED={here}\n"
            f"PBS_START_COMM={here}\nPBS_START_MOM={1 - here}\nPBS_SCP=/bin/cp\n"
        )
        Path("/run/postgresql").mkdir()
        shutil.chown("/run/postgresql", "postgres", "postgres")

    def start_head(self) -> None:
        """Start what a cluster has once: the database, the server, its scheduler, the relay."""
        made = "env", f"PBS_CONF_FILE={self.conf}", str(self.prefix / "libexec" / "pbs_habitat")
        # On a busy machine it may ask the database for something before that answers.
        wait_until("the set-up of PBS", lambda: self.cluster.runs(HEAD, *made))
        self.cluster.daemon(HEAD, "pbs_comm")
        self._start_server()
        self.cluster.daemon(HEAD, "pbs_sched")
        wishes = ["set server acl_roots = root@*", "set server flatuid = True"]
        # A job that comes before the nodes are up would wait for ten minutes.
        wishes += ["set server scheduler_iteration = 2", "set queue workq kill_delay = 2"]
        wishes += ["set server node_fail_requeue = 10"]
        wishes += [
            f"create node {node} resources_available.ncpus={self._cpus}"
            for node in self.cluster.nodes()
        ]
        for wish in wishes:
            self.cluster.on(HEAD, "qmgr", "-c", wish)

    def start_node(self, node: str) -> None:
        """Start the daemon of a node."""
        self.cluster.daemon(node, "pbs_mom")
        self.cluster.on(node, "ln", "-sf", str(self.home / "mom_priv/mom.lock"), "/run/pbs_mom.pid")

    def is_ready(self, node: str) -> bool:
        """Tell whether PBS would give a node to a job."""
        said = self.cluster.on(HEAD, "pbsnodes", "-v", node, check=False)
        state = re.search(r"^\s*state = (\S+)", said, re.MULTILINE)
        return state is not None and state[1] in {"free", "job-busy", "job-exclusive"}

    def resume(self, node: str) -> None:
        """Let jobs have a node again."""
        self.cluster.on(HEAD, "pbsnodes", "-r", "-C", "", node, check=False)

    def mend_head(self) -> None:
        """Start what was killed on the head: nothing can be."""

    def _start_server(self) -> None:
        # Its scripts look for the file where it usually is, however PBS was configured.
        conf = f"export PBS_CONF_FILE={self.conf}"
        environment = f"{conf}; . {self.prefix}/libexec/pbs_db_env; pbs_server"
        self.cluster.daemon(HEAD, "sh", "-c", environment)
        wait_until("the start of pbs_server", lambda: self.cluster.runs(HEAD, "qstat", "-B"))

    def _restart_server(self) -> None:
        """Let the server end in good order and start again from its database."""
        self.cluster.on(HEAD, "qterm", "-t", "quick")
        wait_until("the end of pbs_server", lambda: not self.cluster.runs(HEAD, "qstat", "-B"))
        self._start_server()

    def _write_home(self, home: Path) -> None:
        home.mkdir(mode=0o755, parents=True)
        for name, access in self._folders.items():
            (home / name).mkdir(parents=True, exist_ok=True)
            (home / name).chmod(access)
        # Of its jobs, which find PBS's own commands.
        path = os.pathsep.join(["/usr/bin", "/bin", *self.path])
        (home / "pbs_environment").write_text(f"PATH={path}\n")
        (home / "mom_priv" / "config").write_text(f"$clienthost {HEAD}\n$usecp *:/ /\n")
        user = home / "server_priv" / "db_user"
        user.write_text("postgres")
        user.chmod(0o600)
        for name in ("dedicated", "holidays", "resource_group", "sched_config"):
            text = (self.prefix / "etc" / f"pbs_{name}").read_text()
            to = {"dedicated": "dedicated_time"}.get(name, name)
            (home / "sched_priv" / to).write_text(text)


SCHEDULERS = {"slurm": Slurm, "pbs": Pbs}
