"""Golden outputs: what a command line writes, with the listed masks, against a file of tests/fixtures/golden.

Figures (JSON, CSV, Markdown, exports, pages, directories) are in tests/fixtures/golden, tables and messages for people
in its folder text."""

import base64
import difflib
import hashlib
import json
import os
import re
import shlex
import shutil
import sqlite3
import struct
import subprocess
import tempfile
from pathlib import Path

from machines import FAKES, FIXTURES, ControllableGpu, Intel, LoadedIntel, Machine, Nvidia
from program import IPW, TIMEOUT_S

GOLDEN = FIXTURES / "golden"
TEXT, KEYS = "txt", "keys"
TOOLS = Path(os.environ.get("IPW_BUILD", "build")).resolve() / "tests/tools"
MODELS = FIXTURES.parent.parent / "models"
UPDATE = "tests/cli/test_golden.py --update"


# ---- masks ----

class Mask:
    """A value that differs between two runs of the same program: the second group of the pattern."""

    def __init__(self, name, reason, pattern):
        self.name, self.reason, self.pattern = name, reason, re.compile(pattern, re.DOTALL)
        self.count = 0

    def replace(self, found):
        self.count += 1
        before, value, after = found.groups()
        kind = "number" if re.fullmatch(r"-?\d[\d.eE+-]*", value) else "string"
        return f"{before}<{kind}: {self.name}>{after}"

    def apply(self, text):
        return self.pattern.sub(self.replace, text)


MASKS = [
    Mask("time of a page", "the moment at which it was made", r'("made_at": ?")([^"]*)(")'),
    Mask("time of a model", "the moment at which it was fitted", r'("created_unix_s": ?)([\d.]+)(,)'),
    Mask("time of a push", "the moment at which a run was pushed", r'("pushed": ?)([\d.]+)(,)'),
    Mask("time of a push, in CSV", "after the digest and the size of the run", r"(,[0-9a-f]{16},\d+,)(\d+\.\d+)(,)"),
    Mask("time of a start", "the moment at which a server began", r'("started_at": ?")([^"]*)(")'),
    Mask("time of a file", "the moment at which the summary was written, in the run index", r"(,)(\d{19})(,0,')"),
    Mask("host name", "of the machine that runs the test", r'("host": ?")([^"]+)(")'),
    Mask("work of a load", "depends on the speed of the CPU", r"(^)([\d.]+)( billion multiply-adds)"),
    Mask("version", "changes with every release",
         r'("(?:version|ipw)": ?")(\d+\.\d+\.\d+)(")'),
    Mask("own cost", "CPU time and memory of the program itself",
         r'("(?:cpu_own_s|cpu_s|rss_mb)": ?)([\d.e-]+)(\b)'),
    Mask("own CPU time", "CPU time of the program itself, in a report", r"(ipw itself: )([\d.]+ m?s)( CPU)"),
    Mask("own memory", "memory of the program itself, in a report", r"(CPU, )([\d.]+)( MB)"),
    Mask("CPU time of a command", "real, as all CPU time", r'("(?:user_s|system_s|cpu_user_s|cpu_system_s)": ?)([\d.e-]+)(\b)'),
    Mask("CPU time of a command, user", "real, as all CPU time", r"(, CPU )([\d.]+ [mµ]?s)( user)"),
    Mask("CPU time of a command, system", "real, as all CPU time", r"( user \+ )([\d.]+ [mµ]?s)( system)"),
    Mask("CPU time and memory, in CSV", "real, as all CPU time",
         r"(\b(?:user_s|system_s|cpu_own_s|own\.cpu_s|rss_mb),)([\d.e-]+)(,)"),
    Mask("own CPU time, in Markdown", "CPU time of the program itself", r"(- cpu own: )([\d.]+ [mµ]?s)(\b)"),
    Mask("version, in CSV and Markdown", "changes with every release", r"(\bversion[,:] ?)(\d+\.\d+\.\d+)(\b)"),
    Mask("style sheet", "source text of web/, not data", r"(<style>)(.*?)(</style>)"),
    Mask("ECharts", "the library and its notice, not data",
         r'(<script(?: type="text/plain" id="echarts-notice")?>)([^<]{0,40}Apache.*?)(</script>)'),
    Mask("page script", "source text of web/, not data", r'(<script>)(\s*\(\(\) => \{.*?)(</script>)'),
]


def masked(text, root):
    """The text with every mask applied; root is the temporary folder of the row."""
    text = text.replace(str(root), "<dir>").replace(str(MODELS), "<models>")
    for mask in MASKS:
        text = mask.apply(text)
    return text


# ---- reviewable lines ----

LONG_LINE = 300
STRUCTURE = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=["{\[])')


def wrap(line):
    """A long line of JSON, broken after commas that precede a key, an object or an array; no other byte changes."""
    begin = re.search(r'[{\[]"|\[\{', line) if len(line) > LONG_LINE else None
    if not begin:
        return line
    return STRUCTURE.sub(lambda found: ",\n" if found[0] == "," else found[0], line)


def wrapped(text):
    return "\n".join(map(wrap, text.split("\n")))


# ---- files that are no text ----

def sqlite_text(path):
    with sqlite3.connect(path) as database:
        return "\n".join(database.iterdump()) + "\n"


def arrow_text(path):
    return subprocess.run([TOOLS / "arrow_cat", path], check=True, capture_output=True, text=True, timeout=TIMEOUT_S).stdout


READERS = {".arrow": arrow_text, ".db": sqlite_text}
NOT_FROZEN = {".lock"}  # holds the id of the process


def file_text(path):
    return READERS.get(path.suffix, lambda file: file.read_text(encoding="utf-8"))(path)


def files_of(path, without=()):
    return sorted(file for file in path.rglob("*") if file.is_file() and file.name not in {*NOT_FROZEN, *without})


def folder_text(path, without):
    """Every file below the folder, each with a heading."""
    return "".join(f"==> {file.relative_to(path)} <==\n{file_text(file)}\n" for file in files_of(path, without))


def digest(data):
    return hashlib.sha256(data).hexdigest()[:16]


def folder_digest(path):
    """The files of a folder that has the bytes of a fixture."""
    return "".join(f"{digest(file.read_bytes())} {file.relative_to(path)}\n" for file in files_of(path))


def list_digest(text):
    """One line per entry of a long list, or key of an object: a digest of its bytes and its name."""
    lines = []
    for kind, entries in json.loads(text).items():
        if isinstance(entries, list):
            entries = {entry.get("id") or entry.get("name") or entry.get("url"): entry for entry in entries}
        for name, entry in (entries if isinstance(entries, dict) else {"": entries}).items():
            lines.append(f"{digest(json.dumps(entry, ensure_ascii=False).encode())} {kind} {name}\n")
    return "".join(lines)


def add_keys(value, path, found):
    if isinstance(value, dict):
        for key, inner in value.items():
            found[f"{path}.{key}"] = None
            add_keys(inner, f"{path}.{key}", found)
    elif isinstance(value, list):
        for inner in value:
            add_keys(inner, f"{path}[]", found)


def key_text(text):
    """The keys of a document or of lines of JSON, in the order in which they appear first."""
    try:
        values = [json.loads(text)]
    except json.JSONDecodeError:
        values = [json.loads(line) for line in text.splitlines()]
    found = {}
    for value in values:
        add_keys(value, "", found)
    return "".join(f"{path}\n" for path in found)


def series_text(text):
    """The series of Prometheus' text format without their values."""
    return "".join(line if line.startswith("#") else line.rpartition(" ")[0] + "\n" for line in text.splitlines(True))


# ---- machines to measure ----

VIRTUAL_START_S = 1000  # of the monotonic clock, as in fakes/virtual_clock.h


class VirtualGpu(Nvidia):
    """A GPU whose power changes between two values."""

    def __init__(self):
        super().__init__("power 0 square 100 300 0.7\ntick 0 0.02\nvalue temperature 0 40\nvalue throttle 0 0\n"
                         "value utilisation 0 0")


class RealGpu(Nvidia):
    """A GPU in real time."""

    def __init__(self):
        super().__init__("power 0 constant 300\ntick 0 0.02\nvalue throttle 0 0")


class RealCpu(LoadedIntel):
    """A CPU in real time, whose energy is that of the program's work."""


class VirtualControllableGpu(ControllableGpu):
    """A GPU whose power follows its clock."""

    def __init__(self):
        super().__init__("value throttle 0 0\npower 0 clocked 60 300 3")


class VirtualServer(Intel):
    """Two CPU packages and a GPU."""

    def __init__(self):
        super().__init__(40, 25)
        Nvidia.script(self, "power 0 constant 300\ntick 0 0.02\nvalue temperature 0 40\nvalue throttle 0 0\n"
                      "value utilisation 0 0")
        for package, zone in enumerate(self.zones):
            zone.began = VIRTUAL_START_S
            self.show(package)

    def environment(self):
        return {**super().environment(), **Nvidia.environment(self)}


def in_virtual_time(root):
    """The words that run a command in virtual time."""
    return TOOLS / "virtual_time", root / ".time", Path(FAKES).resolve() / "libfake_virtual_clock.so"


# ---- running ----

class Row:
    """A command line whose output is kept in the file `name`.`extension`.

    @PATH is a path in tests/fixtures, copied into the folder in which the command runs.  `output` is
    a file or folder that the command writes there; otherwise its standard output is kept, and for text also its
    messages and its exit status.  A command that measures does so on a `machine`, in virtual time; one that computes as
    long as it measures cannot, and only the keys of its output are kept (extension "keys").  `without`: names of files
    that another row has.  `has_llama`: needs the llama.cpp library."""

    def __init__(self, name, words, extension, output=None, code=0, machine=None, prepare=(), digest=False, without=(),
                 has_llama=False):
        self.name, self.words, self.extension = name, shlex.split(words), extension
        self.output, self.code, self.machine, self.prepare, self.digest = output, code, machine, prepare, digest
        self.without, self.has_llama = without, has_llama

    @property
    def file(self):
        return f"{self.name}.{self.extension}"

    @property
    def path(self):
        return GOLDEN / ("text" if self.extension == TEXT else "") / self.file

    def place(self, word, root):
        """The word, with its fixtures copied."""
        return re.sub(r"@([\w/.-]+)", lambda found: self.copy(FIXTURES / found[1], root), word)

    @staticmethod
    def copy(source, root):
        target = root / source.name
        if source.is_dir() and not target.exists():
            shutil.copytree(source, target)
            for arrow in target.rglob("*.arrow"):
                arrow.touch()  # a checkout may make the journal newer, so that it would be read instead
        elif not target.exists():
            shutil.copy2(source, target)
        return source.name

    def run(self):
        """The text to compare; None if what it needs is missing here."""
        root = Path(tempfile.mkdtemp(prefix="ipw-golden-"))
        machine = (self.machine or Machine)()
        try:
            environment = quiet_environment(machine, root)
            if self.has_llama:
                del environment["IPW_LLAMA_LIB"]
                if not has_llama(root, environment):
                    return None
            return wrapped(masked(self.text(root, environment), root))
        finally:
            machine.close()
            shutil.rmtree(root, ignore_errors=True)

    def text(self, root, environment):
        runner = in_virtual_time(root) if self.machine and self.extension != KEYS else ()
        for line in self.prepare:
            done = execute(root, environment, (), [self.place(word, root) for word in line.split()])
            assert done.returncode == 0, (line, done.stderr)
        done = execute(root, environment, runner, [self.place(word, root) for word in self.words])
        assert self.extension == TEXT or done.returncode == self.code, f"{done.returncode}: {done.stderr}"
        return self.kept(done, root)

    def kept(self, done, root):
        if self.output:
            path, = root.glob(self.output)
            if path.is_dir():
                return folder_digest(path) if self.digest else folder_text(path, self.without)
            return key_text(path.read_text()) if self.extension == KEYS else file_text(path)
        if self.extension == TEXT:
            return done.stdout + (f"---- stderr\n{done.stderr}" if done.stderr else "") + (
                f"---- exit status {done.returncode}\n" if done.returncode else "")
        if self.extension == KEYS:
            return key_text(done.stdout)
        return list_digest(masked(done.stdout, root)) if self.digest else done.stdout


def has_llama(root, environment):
    clients = json.loads(execute(root, environment, (), ["list", "clients", "--json"]).stdout)["clients"]
    return next(client["available"] for client in clients if client["name"] == "llama")


def execute(root, environment, runner, words):
    return subprocess.run([*runner, os.path.abspath(IPW), *words], cwd=root, env=environment, text=True, capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=TIMEOUT_S)


# Variables of the caller that a command needs; all others would make its output depend on the caller.
KEPT_VARIABLES = ("LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LLVM_PROFILE_FILE")


def quiet_environment(machine, root):
    """An environment in which a command finds nothing of this host: no GPU, no user's files, and instead of gnuplot a
    program that copies its script."""
    programs = root / ".bin"
    programs.mkdir()
    gnuplot = programs / "gnuplot"
    gnuplot.write_text("#!/bin/sh\nexec cat\n")
    gnuplot.chmod(0o755)
    given = {name: value for name, value in machine.environment().items()
             if name in KEPT_VARIABLES or os.environ.get(name) != value}
    return {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(root), "XDG_CACHE_HOME": str(root / ".cache"),
            "TMPDIR": str(root), "LC_ALL": "C.UTF-8", "TZ": "UTC", "NO_COLOR": "1", "IPW_NVML": "none", "IPW_DCGMI": "",
            "IPW_AMDSMI": "none", "IPW_ROCMSMI": "none", "IPW_LLAMA_LIB": "none", "IPW_ONNXRUNTIME_LIB": "none",
            "IPW_MODELS": str(MODELS), **given}


# ---- comparing ----
#
# Another processor or compiler may fuse a product and a sum, and then the last digit differs.  $IPW_GOLDEN_EXACT accepts
# no difference, to compare two versions of the program on one machine.

IS_EXACT = "IPW_GOLDEN_EXACT" in os.environ
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.])")
SHARE = 1e-9
FULL_DIGITS = 12  # a number with this many significant digits shows its round-off


def significant_digits(token):
    return len(re.sub(r"[eE].*|[-.]", "", token).lstrip("0"))


def is_same_number(old, new):
    """The last digits of a number that is printed in full may differ; numbers that were rounded must be equal."""
    if old == new:
        return True
    a, b = float(old), float(new)
    return (max(significant_digits(old), significant_digits(new)) >= FULL_DIGITS
            and abs(a - b) <= SHARE * max(abs(a), abs(b)))


def number_in(line):
    return float(NUMBER.search(line)[0])


def is_same_wall_time(old, new, _):
    return abs(number_in(old) - number_in(new)) <= 1e-6 * abs(number_in(old))


def packed(line):
    """The 16-bit steps of a packed column of a page."""
    data = base64.b64decode(re.search(r'"data":"([^"]*)"', line)[1])
    return struct.unpack(f"<{len(data) // 2}H", data[:len(data) // 2 * 2])


def is_same_column(old, new, before):
    """At most a step apart, or less than the round-off of the values; `before` are the lines with low and step."""
    low, step = map(number_in, before)
    a, b = packed(old), packed(new)
    return len(a) == len(b) and all(abs(x - y) * step <= step + SHARE * abs(low) for x, y in zip(a, b))


def is_same_step(old, new, before):
    return abs(number_in(old) - number_in(new)) * 65535 <= SHARE * abs(number_in(before[1]))


# name, reason, pattern of a line, whether two such lines are the same, given the two lines before
TOLERANCES = [
    ("difference of wall times", "a double resolves seconds since 1970 to 0.24 µs",
     r' *"(?:seconds|device_seconds|output_tokens_per_s)": ?[\d.e-]+,?', is_same_wall_time),
    ("fingerprint", "a digest of figures with all of their digits", r' *"_fingerprint": "[0-9a-f]{16}",?',
     lambda old, new, before: True),
    ("packed column", "in steps of its range, which may be that of round-off", r'"data":"[^"]*".*', is_same_column),
    ("step of a packed column", "as the column", r'"step":[\d.e-]+,', is_same_step),
]


def is_same_line(old, new, before):
    if old == new:
        return True
    if IS_EXACT:
        return False
    if NUMBER.split(old) == NUMBER.split(new) and all(map(is_same_number, NUMBER.findall(old), NUMBER.findall(new))):
        return True
    return any(re.fullmatch(pattern, old) and re.fullmatch(pattern, new) and is_same(old, new, before)
               for _, _, pattern, is_same in TOLERANCES)


def difference(old, new, file):
    """A short unified diff; lines whose numbers differ by round-off only are equal."""
    before, after = old.split("\n"), new.split("\n")
    if len(before) == len(after):
        after = [a if is_same_line(a, b, before[max(i - 2, 0):i]) else b
                 for i, (a, b) in enumerate(zip(before, after))]
    lines = list(difflib.unified_diff(before, after, f"golden/{file}", "now", n=1, lineterm=""))
    return "\n".join(line[:200] for line in lines[:40])
