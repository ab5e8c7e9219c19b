#!/usr/bin/env python3
# test: real time
"""The sandbox of the shell and python tools: programs that people use work in it, the limit on processes holds for
every kind of process and user, and nothing outside can be changed.  Fork bombs are bounded, in case that it does
not."""

import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from program import LANDLOCK_CREATE_RULESET, SANITIZED, call_tools, ipw, without_system_calls  # noqa: E402

NOBODY = 65534
PTRACE = 117 if platform.machine() == "aarch64" else 101
MEMORY = "memory_mb=4096"  # threads of a linear algebra library reserve much address space
PROCESSES = 24
OVER = f"[limit of {PROCESSES} processes and threads reached]"


def call(tool, code, *params, **options):
    """(is_error, output)."""
    key = "code" if tool == "python" else "command"
    return call_tools(tool, [(tool, {key: code})], f"{tool}.{MEMORY}", *params, **options)[0]


def shell(command, *params, **options):
    return call("shell", command, *params, **options)


def python(code, *params, **options):
    return call("python", code, *params, **options)


def as_nobody():
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def can_mount():
    """Whether this user may create a mount namespace here."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return subprocess.run(["unshare", *user, "--mount", "mount", "-t", "tmpfs", "tmpfs", "/dev/shm"],
                          capture_output=True).returncode == 0


def needs(*programs):
    missing = [name for name in programs if not shutil.which(name)]
    return unittest.skipIf(missing, f"not installed: {', '.join(missing)}")


needs_mounts = unittest.skipUnless(shutil.which("unshare") and can_mount(), "no mount namespaces here")


class SandboxTest(unittest.TestCase):
    def expect(self, result, output):
        is_error, text = result
        self.assertFalse(is_error, text)
        self.assertEqual(text, output)


class Programs(SandboxTest):
    @needs("bash", "seq", "sort", "sed", "awk", "find", "tar", "xargs")
    def test_pipelines_and_coreutils(self):
        self.expect(shell("seq 100 | sort -rn | head -3 | tr '\\n' ' ' | sed 's/9/x/g'"), "100 xx x8 ")
        self.expect(shell("bash -c 'set -o pipefail; mapfile -t a < <(seq 5); cat <<< ${a[@]}; (exit 3) | cat; echo $?'"),
                    "1 2 3 4 5\n3\n")
        self.expect(shell("mkdir -p a/b && touch -d 2001-02-03 a/b/c && chmod 640 a/b/c && cp -a a d && ln -s d e && "
                          "mv d/b/c d/f && find . -type f | sort && stat -c '%a %y' d/f | cut -c 1-14 && "
                          "tar czf t.tgz a && tar tzf t.tgz | wc -l && seq 6 | xargs -P 3 -n 2 echo | wc -l && "
                          "nice -n 5 echo nice 2>/dev/null && timeout 5 env -i date -u -d @0 +%Y && df . > /dev/null && "
                          "mkfifo p && (echo through > p & cat p) && du -s a > /dev/null && rm -r a"),
                    "./a/b/c\n./d/f\n640 2001-02-03\n3\n3\nnice\n1970\nthrough\n")

    @needs("git")
    def test_git(self):
        is_error, text = shell("git init -q . && git config user.email a@b.c && git config user.name me && echo x > f && "
                               "git add f && git commit -qm first && git mv f g && git commit -qam second && "
                               "git checkout -qb other && git gc -q && git log --format=%s && git status --short && "
                               "git clone -q . copy && cat copy/g")
        self.assertEqual((is_error, text), (False, "second\nfirst\nx\n"))

    @needs("gcc")
    def test_gcc_with_threads(self):
        source = ("#include <pthread.h>\n#include <stdio.h>\nstatic void *run(void *x) { return x; }\nint main(void) { "
                  "pthread_t t[8]; for (int i = 0; i < 8; i++) pthread_create(&t[i], 0, run, 0); for (int i = 0; i < 8; i++) "
                  "pthread_join(t[i], 0); puts(\"joined\"); return 42; }")
        is_error, text = shell(f"cat > a.c <<'EOF'\n{source}\nEOF\ngcc -O2 -o a a.c -lpthread && ./a; echo $?")
        self.assertEqual((is_error, text), (False, "joined\n42\n"))

    @needs("make", "gcc")
    def test_parallel_make(self):
        self.expect(shell("for i in $(seq 16); do echo \"int f$i(void) { return $i; }\" > f$i.c; done; "
                          "echo 'all: $(patsubst %.c,%.o,$(wildcard *.c))' > Makefile; "
                          "make -s -j8 CFLAGS=-pipe && ls *.o | wc -l"), "16\n")

    @needs("python3")
    def test_python_threads_and_subprocesses(self):
        self.expect(python("""
import asyncio, subprocess, threading, concurrent.futures, os, resource, socket, tempfile
with concurrent.futures.ThreadPoolExecutor(32) as pool:
    print(sum(pool.map(abs, range(-99, 1))))
print(subprocess.run("echo $((6 * 7)) | cat", shell=True, capture_output=True, text=True).stdout.strip())
async def run():
    child = await asyncio.create_subprocess_exec("echo", "async", stdout=subprocess.PIPE)
    return (await child.communicate())[0].decode().strip()
print(asyncio.run(run()))
os.sched_setaffinity(0, os.sched_getaffinity(0))
resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
one, other = socket.socketpair()
one.sendall(b"pair")
print(other.recv(10).decode())
"""), "4950\n42\nasync\npair\n")

    @needs("python3")
    @needs_mounts
    def test_python_multiprocessing(self):
        self.expect(python("""
import multiprocessing, os
from multiprocessing import shared_memory
def add(queue, lock, total):
    with lock:
        total.value += 1
    queue.put(total.value)
with multiprocessing.Pool(8) as pool:
    print(sum(pool.map(abs, range(1000))))
queue, lock, total = multiprocessing.Queue(), multiprocessing.Lock(), multiprocessing.Value("i", 0)
children = [multiprocessing.Process(target=add, args=(queue, lock, total)) for _ in range(4)]
for child in children: child.start()
print(sorted(queue.get() for _ in children)[-1])
for child in children: child.join()
segment = shared_memory.SharedMemory(create=True, size=1000)
print(os.listdir("/dev/shm") == [segment.name])
segment.close()
segment.unlink()
"""), "499500\n4\nTrue\n")

    @unittest.skipUnless(os.environ.get("IPW_PYTHON"), "no IPW_PYTHON with NumPy")
    def test_numpy(self):
        folder = Path(os.environ["IPW_PYTHON"]).parent
        environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
        self.expect(python("import numpy as np\na = np.arange(250000.0).reshape(500, 500)\n"
                           "print(int(np.trace(a @ a.T / 1e6)), np.linalg.solve(np.eye(3), [1, 2, 3]).sum())",
                           env=environment), f"{int(sum(i * i for i in range(250000)) / 1e6)} 6.0\n")


FORKS = """
import os, time
count = 0
for _ in range(200):
    try:
        child = os.fork()
    except OSError as error:
        print(count, error.strerror)
        break
    if child == 0:
        time.sleep(50)
        os._exit(0)
    count += 1
else:
    print(count, "without an error")
"""
# Each child forks again and ends, so that its child is an orphan, in its own session.
ORPHANS = """
import os, time
count = 0
for _ in range(200):
    if os.fork() == 0:
        try:
            child = os.fork()
        except OSError:
            os._exit(1)
        if child == 0:
            os.setsid()
            time.sleep(50)
        os._exit(0)
    if os.wait()[1]:
        break
    count += 1
print(count, "orphans")
"""


class Limit(SandboxTest):
    def expect_over(self, result, output):
        is_error, text = result
        self.assertTrue(is_error, text)
        self.assertIn(output, text)
        self.assertIn(OVER, text)

    @needs("python3")
    def test_processes_are_limited(self):
        limit = f"python.processes={PROCESSES}"
        self.expect_over(python(FORKS, limit), f"{PROCESSES - 1} Resource temporarily unavailable")
        self.expect_over(python(ORPHANS, limit), f"{PROCESSES - 2} orphans")
        code = ("import threading, time\ncount = 1\ntry:\n    for _ in range(200):\n        threading.Thread(target=time.sleep, "
                "args=(50,), daemon=True).start()\n        count += 1\nexcept RuntimeError:\n    print(count, 'threads')")
        self.expect_over(python(code, limit), f"{PROCESSES} threads")

    @needs("python3")
    def test_processes_that_have_ended_do_not_count(self):
        self.expect(python("import os\nfor _ in range(300):\n    if os.fork() == 0: os._exit(0)\n    os.wait()\nprint('done')",
                           f"python.processes={PROCESSES}"), "done\n")
        self.expect(shell("i=0; while [ $i -lt 300 ]; do (true) & wait; i=$((i+1)); done; echo done",
                          f"shell.processes={PROCESSES}"), "done\n")

    def test_other_processes_of_the_user_do_not_count(self):
        others = [subprocess.Popen(["sleep", "100"]) for _ in range(2 * PROCESSES)]
        try:
            self.expect(shell("seq 3 | sort -n | cat | wc -l", f"shell.processes={PROCESSES}"), "3\n")
        finally:
            for process in others:
                process.kill()
                process.wait()

    SLEEPERS = "i=0; while [ $i -lt 100 ]; do sleep 50 & i=$((i+1)); echo $i; done"

    @unittest.skipUnless(os.geteuid() == 0, "not root")
    def test_other_users_are_limited_too(self):
        environment = {**os.environ, "PATH": "/usr/bin:/bin"}
        is_error, text = shell(self.SLEEPERS, f"shell.processes={PROCESSES}", preexec_fn=as_nobody, env=environment)
        self.assertTrue(is_error, text)
        self.assertEqual(re.findall(r"^\d+$", text, re.M)[-1], str(PROCESSES - 1))

    def test_invalid_limits_are_rejected(self):
        for value in ("0", "4097", "x"):
            done = ipw(None, "agent", "--client", "null", "--model", "m", "--tools", "shell", "--tool-param",
                       f"shell.processes={value}")
            self.assertEqual(done.returncode, 2)
            self.assertIn("processes", done.stderr)

    def count_while(self, marker, run):
        """The largest number of processes with the marker in their command line while it runs, and its result."""
        largest, result = 0, []
        thread = threading.Thread(target=lambda: result.append(run()))
        thread.start()
        while thread.is_alive():
            largest = max(largest, self.count(marker))
            time.sleep(0.02)
        thread.join()
        return largest, result[0]

    @staticmethod
    def count(marker):
        found = 0
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                found += marker in path.read_bytes()
            except OSError:
                pass
        return found

    def check_bomb(self, tool, code, marker, **options):
        # The command that calls the tool does not have the marker; the shell or interpreter has.
        largest, result = self.count_while(marker, lambda: call(tool, code, f"{tool}.processes={PROCESSES}", **options))
        self.assertEqual(self.count(marker), 0)
        self.assertTrue(result[0], result[1])
        self.assertIn(OVER, result[1])
        return largest, result[1]

    # At most 2^9 processes.
    PYTHON_BOMB = ("import os, time\n# {}\nfor _ in range(9):\n    try: os.fork()\n    except OSError: pass\n"
                   "time.sleep(1)")
    SHELL_BOMB = ": {}; f() {{ [ $1 -gt 0 ] && {{ f $(($1-1)) | f $(($1-1)) & }}; sleep 1; }}; f 8 2> errors; sleep 1"

    @needs("python3", "bash")
    def test_fork_bombs_end_with_an_error(self):
        for tool, code, wrap in (("python", self.PYTHON_BOMB, "{}"), ("shell", self.SHELL_BOMB, "{}"),
                                 ("shell", self.SHELL_BOMB, "bash -c '{}'")):
            with self.subTest(code=wrap.format(tool)):
                marker = f"bomb-{os.getpid()}-{tool}"
                largest, _ = self.check_bomb(tool, wrap.format(code.format(marker)), marker.encode())
                self.assertLessEqual(largest, PROCESSES)

    @needs("python3")
    @unittest.skipUnless(os.geteuid() == 0, "not root, whom the kernel exempts from its own limit")
    @unittest.skipIf(SANITIZED, "the leak check needs ptrace")
    def test_without_tracing_a_bomb_is_killed(self):
        marker = f"bomb-{os.getpid()}-killed"
        older = without_system_calls(PTRACE)
        _, text = self.check_bomb("python", self.PYTHON_BOMB.format(marker), marker.encode(), preexec_fn=older)
        self.assertIn("[killed by signal 9]", text)
        self.expect(shell("seq 3 | sort -n | wc -l", preexec_fn=older), "3\n")
        listed = ipw(None, "list", "tools", preexec_fn=older).stdout
        self.assertEqual(listed.count("killed when it exceeds its limit on processes: no user namespace"), 2, listed)


class Outside(SandboxTest):
    @needs("python3")
    def test_without_landlock_processes_outside_cannot_be_signaled(self):
        code = f"""
import os, signal, time
def attempt(action):
    try: action()
    except PermissionError: return "refused"
    return "sent"
print([attempt(lambda: os.kill(pid, 0)) for pid in ({os.getpid()}, os.getppid(), -1, -{os.getpgrp()})])
child = os.fork()
if child == 0: time.sleep(50)
print([attempt(lambda: os.kill(pid, 0)) for pid in (os.getpid(), child, 0, -os.getpgrp())])
os.kill(child, signal.SIGKILL)
print(os.wait()[1])
"""
        output = "['refused', 'refused', 'refused', 'refused']\n['sent', 'sent', 'sent', 'sent']\n9\n"
        self.expect(python(code, preexec_fn=without_system_calls(LANDLOCK_CREATE_RULESET)), output)

    @needs_mounts
    def test_attributes_of_files_outside_cannot_be_changed(self):
        with tempfile.NamedTemporaryFile() as file:
            before = os.stat(file.name)
            for command in ("chmod 777", "touch -d 2001-02-03", f"chown {before.st_uid}:{before.st_gid}"):
                is_error, text = shell(f"{command} {file.name}")
                self.assertTrue(is_error, text)
                self.assertIn("Read-only file system", text)
            after = os.stat(file.name)
            self.assertEqual((after.st_mode, after.st_mtime_ns, after.st_ctime_ns),
                             (before.st_mode, before.st_mtime_ns, before.st_ctime_ns))

    @needs("python3")
    @needs_mounts
    def test_shared_memory_of_others_is_inaccessible(self):
        with tempfile.NamedTemporaryFile(dir="/dev/shm", mode="w") as file:
            file.write("another's")
            file.flush()
            before = set(os.listdir("/dev/shm"))
            self.expect(python(f"import os\nprint(os.path.exists({file.name!r}))\nopen('/dev/shm/left', 'w').write('x')\n"
                               "print(os.listdir('/dev/shm'))"), "False\n['left']\n")
            self.assertNotIn("left", set(os.listdir("/dev/shm")) - before)

    @needs("python3")
    def test_datagrams_cannot_leave_the_sandbox(self):
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
            path = f"{folder}/socket"
            receiver.bind(path)
            receiver.setblocking(False)
            is_error, text = python("import socket\none, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
                                    f"one.sendto(b'hello', {path!r})")
            self.assertTrue(is_error, text)
            self.assertIn("PermissionError", text)
            with self.assertRaises(BlockingIOError):
                receiver.recv(100)


if __name__ == "__main__":
    unittest.main(verbosity=2)
