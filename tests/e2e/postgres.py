"""A private PostgreSQL for tests: a cluster in a temporary folder, on a Unix socket and a port of 127.0.0.1."""
import glob
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import unittest
from pathlib import Path

# Without fsync, since the host does not crash: commits still survive a restart of the server.
SETTINGS = "fsync=off full_page_writes=off shared_buffers=32MB max_connections=40".split()


def programs():
    """The folder of initdb, which is not in PATH on Debian; None without the server."""
    found = [*sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True), os.path.dirname(shutil.which("initdb") or "")]
    return next((folder for folder in found if folder and os.access(f"{folder}/initdb", os.X_OK)), None)


class Postgres:
    def __init__(self, **options):
        if not programs() or not shutil.which("psql"):
            raise unittest.SkipTest("postgresql is not installed: apt install postgresql")
        self.folder = tempfile.mkdtemp(prefix="ipw-postgres-")
        self.data, self.log = f"{self.folder}/data", f"{self.folder}/log"
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        if os.geteuid() == 0:  # the server refuses to run as root
            user = next(u for u in ("postgres", "nobody") if self.has_user(u))
            self.user = {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}
            os.chown(self.folder, pwd.getpwnam(user).pw_uid, pwd.getpwnam(user).pw_gid)
        else:
            self.user = {}
        self.call("initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N")
        self.start()

    @staticmethod
    def has_user(name):
        try:
            return bool(pwd.getpwnam(name))
        except KeyError:
            return False

    def call(self, program, *words):
        done = subprocess.run([f"{programs()}/{program}", *words], capture_output=True, text=True, cwd=self.folder,
                              env={**os.environ, "LC_ALL": "C.UTF-8"}, **self.user)
        if done.returncode:
            raise AssertionError(f"{program} failed: {done.stdout}{done.stderr}")

    def start(self):
        options = " ".join([f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1",
                            *(f"-c {setting}" for setting in SETTINGS)])
        self.call("pg_ctl", "-D", self.data, "-l", self.log, "-o", options, "-w", "-t", "120", "start")

    def stop(self):
        self.call("pg_ctl", "-D", self.data, "-m", "immediate", "-w", "stop")

    def release(self):
        if os.path.exists(f"{self.data}/postmaster.pid"):
            self.stop()
        shutil.rmtree(self.folder)

    def url(self, database="postgres", user="postgres", password=None):
        login = f"{user}:{password}" if password else user
        return f"postgres://{login}@127.0.0.1:{self.port}/{database}"

    def psql(self, sql, database="postgres", user="postgres"):
        """The rows of a query by psql, as lists of strings."""
        done = subprocess.run(["psql", "-X", "-q", "-A", "-t", "-F", "\t", "-v", "ON_ERROR_STOP=1",
                               "-h", "127.0.0.1", "-p", str(self.port), "-U", user, "-d", database, "-c", sql],
                              capture_output=True, text=True, cwd="/")
        if done.returncode:
            raise AssertionError(done.stderr)
        return [line.split("\t") for line in done.stdout.splitlines()]

    def create(self, name):
        self.psql(f"CREATE DATABASE {name}")
        return self.url(name)
