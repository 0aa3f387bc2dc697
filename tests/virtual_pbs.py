"""OpenPBS on the nodes of a virtual cluster, where ``pbs_server`` is on PATH.

Debian has no package of it; its sources build with --prefix and PostgreSQL, and run as root.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.conftest import VirtualCluster, until

# As its own set-up makes them, with the access that its daemons insist on.
_FOLDERS = {
    **dict.fromkeys(("spool", "undelivered"), 0o1777),
    **dict.fromkeys(("server_logs", "sched_logs", "comm_logs", "mom_logs", "aux"), 0o755),
    **dict.fromkeys(("server_priv", "sched_priv", "mom_priv", "checkpoint"), 0o750),
    **dict.fromkeys(("server_priv/accounting", "server_priv/jobs", "server_priv/users"), 0o750),
    **dict.fromkeys(("server_priv/hooks/tmp", "mom_priv/hooks/tmp", "mom_priv/jobs"), 0o750),
}
_SCHEDULING = ("dedicated", "holidays", "resource_group", "sched_config")


class VirtualPbs:
    """A PBS whose server is on the head of a virtual cluster; its nodes have so many cores."""

    def __init__(self, cluster: VirtualCluster, nodes: Sequence[str], cores: int) -> None:
        self.cluster = cluster
        self.root = Path(str(shutil.which("pbs_server"))).resolve().parents[1]
        # Nobody else may write to a folder above.
        self.folder = Path(tempfile.mkdtemp(prefix="clustergate-pbs-", dir="/var/lib"))
        self.folder.chmod(0o755)
        for node in ("head", *nodes):
            self._write_home(node)
        libexec = self.root / "libexec"
        self._on("head", "install", "-d", "-o", "postgres", "/var/run/postgresql")
        self._on("head", str(libexec / "pbs_habitat"))
        self._on("head", "sbin/pbs_comm")
        self._on("head", "sh", "-c", f". {libexec}/pbs_db_env; {self.root}/sbin/pbs_server")
        self._on("head", "sbin/pbs_sched")
        for node in nodes:
            self._on(node, "sbin/pbs_mom")
        wishes = ["set server acl_roots = root@*", "set server flatuid = True"]
        # A job that comes before the nodes are up would wait for ten minutes.
        wishes += ["set server scheduler_iteration = 2"]
        wishes += [f"create node {node} resources_available.ncpus={cores}" for node in nodes]
        for wish in wishes:
            said = self._on("head", "bin/qmgr", "-c", wish)
            assert said.returncode == 0, (wish, said.stderr)

    def run(self, script: str, folder: Path) -> str:
        """Run a job to its end and return what it printed."""
        job, out = folder / "job.sh", folder / "delivered"
        out.unlink(missing_ok=True)
        job.write_text(script)
        words = ["bin/qsub", "-W", "block=true", "-j", "oe", "-o", str(out), str(job)]
        said = self._on("head", *words)
        assert said.returncode == 0, (script, said.stdout, said.stderr)
        # It is delivered a moment after the end.
        until(out.exists, lambda: f"PBS delivered nothing of {script}")
        return out.read_text()

    def remove(self) -> None:
        """Remove its files; its processes go with the cluster."""
        shutil.rmtree(self.folder)

    def _on(self, node: str, *words: str) -> "subprocess.CompletedProcess[str]":
        program = words[0] if words[0][0] == "/" or "/" not in words[0] else self.root / words[0]
        conf = f"PBS_CONF_FILE={self.folder / node}.conf"
        return self.cluster("run", node, "env", conf, str(program), *words[1:])

    def _write_home(self, node: str) -> None:
        home, here = self.folder / node, int(node == "head")
        (self.folder / f"{node}.conf").write_text(
            f"PBS_EXEC={self.root}\nPBS_HOME={home}\nPBS_SERVER=head\nPBS_LEAF_NAME={node}\n"
            f"PBS_START_SERVER={here}\nPBS_START_SCHED={here}\nPBS_START_COMM={here}\n"
            f"PBS_START_MOM={1 - here}\nPBS_SCP=/bin/cp\n"
        )
        home.mkdir(mode=0o755)
        for name, access in _FOLDERS.items():
            (home / name).mkdir(parents=True)
            (home / name).chmod(access)
        (home / "pbs_environment").write_text("PATH=/bin:/usr/bin\n")
        (home / "mom_priv" / "config").write_text("$clienthost head\n$usecp *:/ /\n")
        (home / "server_priv" / "db_user").write_text("postgres")
        (home / "server_priv" / "db_user").chmod(0o600)
        for name in _SCHEDULING:
            text = (self.root / "etc" / f"pbs_{name}").read_text()
            to = {"dedicated": "dedicated_time"}.get(name, name)
            (home / "sched_priv" / to).write_text(text)
