"""Common code of the structure checks: source files, symbols of objects, and the allow-list."""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

SUFFIXES = {".c", ".h", ".def"}


def arguments(doc):
    parser = argparse.ArgumentParser(description=doc)
    here = Path(__file__).resolve().parent.parent
    parser.add_argument("--root", type=Path, default=here, help="the source tree")
    parser.add_argument("--build", type=Path, help="its build folder (ROOT/build)")
    args = parser.parse_args()
    args.root = args.root.resolve()
    args.build = args.build or args.root / "build"
    return args


class Report:
    """Collects problems with their locations; finish() prints them and exits."""

    def __init__(self):
        self.problems = []

    def add(self, place, text):
        self.problems.append(f"{place}: {text}")

    def finish(self, summary):
        name = Path(sys.argv[0]).name
        for problem in sorted(set(self.problems)):
            print(problem)
        print(f"{name}: {len(set(self.problems))} problems; {summary}")
        sys.exit(1 if self.problems else 0)


def sources(root, *folders):
    """Our C files under the folders, relative to the root."""
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SUFFIXES:
                yield path.relative_to(root)


TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def strip(text, strings=True):
    """The text without comments and the contents of strings; line numbers are unchanged."""

    def blank(match):
        token = match.group()
        if token[0] == "/":
            return re.sub(r"[^\n]", " ", token)
        return token[0] + token[-1] if strings else token

    return TOKEN.sub(blank, text)


def compile_commands(args):
    path = args.build / "compile_commands.json"
    if not path.exists():
        sys.exit(f"{path}: not there; build first")
    for entry in json.loads(path.read_text()):
        words = shlex.split(entry["command"])
        output = os.path.join(entry["directory"], words[words.index("-o") + 1])
        yield Path(os.path.relpath(entry["file"], args.root)), words, Path(output)


class Symbols:
    """Symbols that a source defines and those it needs from others, read from its object file."""

    def __init__(self):
        self.functions, self.data, self.needs = set(), set(), set()


def symbols(args, report):
    """{source: Symbols} for every object of the build; a source of src/ must have one."""
    objects = {}
    for source, _, output in compile_commands(args):
        if output.exists():
            objects[str(output)] = source
        elif source.parts[0] == "src":
            report.add(source, "not built: build before checking")
    found = {source: Symbols() for source in objects.values()}
    lines = subprocess.run(["nm", "-A", "-P", *objects], check=True, capture_output=True, text=True)
    for line in lines.stdout.splitlines():
        output, _, rest = line.partition(": ")
        name, kind = rest.split()[:2]
        entry = found[objects[output]]
        if kind in "Uw":
            entry.needs.add(name)
        elif kind in "TW":
            entry.functions.add(name)
        elif kind.isupper():
            entry.data.add(name)
    return found


class Allow:
    """tools/allow.txt: exceptions, each with its reason.  An unused one is reported."""

    def __init__(self, args, check):
        self.entries, self.used = {}, set()
        for number, line in enumerate((args.root / "tools/allow.txt").read_text().splitlines(), 1):
            if line.strip() and not line.startswith("#"):
                kind, place, name, reason = line.split(None, 3)
                if kind == check and reason:
                    self.entries[number] = (place, name)

    def __call__(self, place, name):
        for number, (where, what) in self.entries.items():
            if fnmatch(str(place), where) and fnmatch(name, what):
                self.used.add(number)
                return True
        return False

    def report_stale(self, report):
        for number in sorted(set(self.entries) - self.used):
            place, name = self.entries[number]
            report.add(f"tools/allow.txt:{number}", f"{name} in {place} is no longer an exception")


def cycles(graph):
    """The strongly connected components of {node: {node}} with more than one node, each as a cycle."""

    def path(start):
        queue, seen = [[start]], set()
        for walk in queue:
            for node in sorted(graph.get(walk[-1], ())):
                if node == start:
                    return walk + [node]
                if node not in seen:
                    seen.add(node)
                    queue.append(walk + [node])
        return None

    told = set()
    for node in sorted(graph):
        if node not in told and (walk := path(node)):
            told.update(walk)
            yield walk


def arguments_of(text, at):
    """The arguments of the macro whose parenthesis opens at text[at]: strings and nested parentheses stay whole."""
    found, depth, begin = [], 0, at + 1
    for match in re.compile(r'"(?:\\.|[^"\\])*"|[(),]').finditer(text, at):
        token, end = match.group(), match.start()
        depth += (token == "(") - (token == ")")
        if (token == "," and depth == 1) or depth == 0:
            found.append(text[begin:end].strip())
            begin = end + 1
        if depth == 0:
            return found
    raise SystemExit("unbalanced parentheses")


def string(argument):
    """Adjacent literals are one string, as in C."""
    return "".join(re.findall(r'"((?:\\.|[^"\\])*)"', argument))
