"""A one-node Slurm for tests: munged, slurmctld and slurmd as child processes, with their own ports and folders.  It
needs no systemd, cgroups or accounting database."""
import ctypes
import getpass
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

TIMEOUT_S = 30
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scontrol", "sinfo")

CONFIG = """\
ClusterName=ipw
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={root}/munge/socket,cred_expire=5
CredType=cred/munge
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool
SlurmctldPidFile={root}/slurmctld.pid
SlurmdPidFile={root}/slurmd.pid
SlurmctldLogFile={root}/slurmctld.log
SlurmdLogFile={root}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerParameters=sched_interval=1,sched_min_interval=0,batch_sched_delay=0,bf_interval=1
SlurmdParameters=config_overrides
PriorityType=priority/basic
ReturnToService=2
KillWait=1
MessageTimeout=2
GresTypes=gpu
Prolog={root}/prolog
Epilog={root}/epilog
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 Gres=gpu:1 State=UNKNOWN
PartitionName=debug Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def path():
    """PATH with sbin, where Debian installs the daemons."""
    return os.environ["PATH"] + ":/usr/sbin:/sbin"


def free_ports(count):
    holders = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [holder.getsockname()[1] for holder in holders]
    for holder in holders:
        holder.close()
    return ports


def end_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: ends with a killed test


def wait_until(true, what):
    deadline = time.monotonic() + TIMEOUT_S
    while not true():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {TIMEOUT_S} s for {what}")
        time.sleep(0.05)


class Slurm:
    """Raises SkipTest with the reason if it cannot run."""

    def __init__(self):
        missing = [name for name in PROGRAMS if not shutil.which(name, path=path())]
        if missing:
            raise unittest.SkipTest(f"not installed (tools/setup test): {', '.join(missing)}")
        self.root = Path(tempfile.mkdtemp(prefix="ipw-slurm-"))
        self.host = socket.gethostname().split(".")[0]
        for name in ("munge", "state", "spool"):
            (self.root / name).mkdir(mode=0o700)
        (self.root / "munge" / "key").write_bytes(os.urandom(1024))
        (self.root / "munge" / "key").chmod(0o400)
        self.root.chmod(0o755)  # munged requires a parent directory that others cannot write to
        (self.root / "slurm.conf").write_text(CONFIG.format(
            host=self.host, user=getpass.getuser(), root=self.root, ports=free_ports(2)))
        (self.root / "gres.conf").write_text(f"NodeName={self.host} Name=gpu File=/dev/null\n")
        for name in ("prolog", "epilog"):
            self.run_around_jobs(name, "true")
        self.environment = {**os.environ, "PATH": path(), "SLURM_CONF": str(self.root / "slurm.conf")}
        self.daemons = {}
        try:
            self.start_all()
        except (AssertionError, OSError) as why:
            said = "".join(f"\n{log}: {log.read_text(errors='replace')[-600:]}" for log in self.root.glob("*.log"))
            self.stop()
            raise unittest.SkipTest(f"Slurm does not start here: {why}{said}") from why

    def run_around_jobs(self, name, command):
        """Sets the prolog or epilog of the node, which slurmd runs with its own environment."""
        script = self.root / f"{name}.new"
        script.write_text(f"#!/bin/sh\n{command}\n")
        script.chmod(0o755)
        script.rename(self.root / name)

    def start_all(self):
        munge = self.root / "munge"
        self.start("munged", "--foreground", "--force", f"--key-file={munge / 'key'}", f"--socket={munge / 'socket'}",
                   f"--pid-file={munge / 'pid'}", f"--log-file={munge / 'log'}", f"--seed-file={munge / 'seed'}")
        wait_until((munge / "socket").exists, "munged")
        self.start("slurmctld", "-D")
        self.start("slurmd", "-D", "-N", self.host)
        wait_until(lambda: self.ask("sinfo", "-h", "-o", "%T") == "idle", "a node that is idle")

    def start(self, name, *arguments):
        with open(self.root / f"{name}.out.log", "ab") as log:
            self.daemons[name] = subprocess.Popen([shutil.which(name, path=path()), *arguments], env=self.environment,
                                                  stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.root,
                                                  start_new_session=True, preexec_fn=end_with_parent)

    def ask(self, *words):
        """The output of a Slurm command; "" if it fails."""
        done = subprocess.run(words, env=self.environment, text=True, capture_output=True, stdin=subprocess.DEVNULL)
        return done.stdout.strip() if done.returncode == 0 else ""

    def states(self, job):
        """States of array elements that have not ended."""
        lines = self.ask("squeue", "-h", "-r", "-j", job, "-o", "%K %T").splitlines()
        return dict(line.split() for line in lines)

    def kill(self, name):
        self.daemons[name].kill()
        self.daemons[name].wait()

    def stop_daemon(self, name):
        self.daemons[name].terminate()
        try:
            self.daemons[name].wait(10)
        except subprocess.TimeoutExpired:
            self.kill(name)

    def stop(self):
        if "slurmd" in self.daemons:
            self.ask("scancel", "--full", "--signal=KILL", f"--user={getpass.getuser()}")
        for name in ("slurmd", "slurmctld", "munged"):
            if name in self.daemons:
                self.stop_daemon(name)
        self.kill_steps()
        shutil.rmtree(self.root, ignore_errors=True)

    def kill_steps(self):
        """A slurmstepd whose slurmd was killed would retry the controller forever."""
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if (folder / "cwd").readlink() == self.root and (folder / "comm").read_text() == "slurmstepd\n":
                    os.kill(int(folder.name), signal.SIGKILL)
            except OSError:  # it has ended, or is not ours
                pass
