#!/usr/bin/env python3
# test: real time
"""The man pages agree with the program: commands, options, formats, environment, functions.  Each comparison is a
function from texts to problems, which is tested with injected faults."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from compiler import BUILD, SOURCE, build  # noqa: E402
from machines import FAKE_NVML, Fixture  # noqa: E402
from program import MachineTest, ipw  # noqa: E402

MAN = SOURCE / "docs" / "man"
TOOLS = ["db init", "db list", "db prune", "db pull", "db push", "estimate calibrate", "estimate validate",
         "power fit", "power predict", "power validate"]  # commands inside a command
PRICES = ["--price-per-kwh", "0.3", "--device-price-per-hour", "2", "--gco2-per-kwh", "400"]  # keys that need prices
PUNCTUATION = {",", ".", ";", ":", "|", "(", ")", "[", "]", "?", "!"}


# ---- reading mdoc ----

def page(name):
    return (MAN / name).read_text()


def command_page(command):
    return page(f"ipw-{command.replace(' ', '-')}.1" if command else "ipw.1")


def section(text, title):
    """The lines of one section."""
    found = re.search(rf"^\.Sh {re.escape(title)}\n(.*?)(?=^\.Sh |\Z)", text, re.M | re.S)
    return found.group(1).splitlines() if found else []


def words_of(line):
    return [word.strip('"') for word in re.findall(r'"[^"]*"|\S+', line)]


def listed(lines, macro):
    """The items of lists: words after .It MACRO, without commas."""
    found = []
    for line in lines:
        if line.startswith(f".It {macro} "):
            found += [word for word in words_of(line)[2:] if word not in PUNCTUATION]
    return found


def marked(lines, macro):
    """Every word after the macro, in items and in running text."""
    found = []
    for line in lines:
        words = words_of(line)
        if words and words[0] == ".It":
            words = ["." + words[1], *words[2:]] if len(words) > 1 else []
        if words and words[0] == f".{macro}":
            found += [word for word in words[1:] if word not in PUNCTUATION]
    return found


def item_option(line):
    """(letter, name, value) of an item `.It Fl o , Fl -output Ar FILE`; None for other lines."""
    found = re.fullmatch(r"\.It (?:Fl (\w) , )?Fl -([\w-]+)(?: Ar (\S+))?", line)
    return found and (found.group(1), found.group(2), found.group(3))


def flatten(line):
    """A synopsis line as rendered: `.Op Fl -count Ar N` is [--count N], and `.Brq Ar A | Ar B` is {A | B}."""
    words = words_of(line)
    begin, end = {".Op": "[]", ".Brq": "{}"}.get(words[0], ("", ""))
    words = words[1:] if begin else [words[0][1:], *words[1:]]
    shown, dash = [], False
    for word in words:
        if word == "Fl":
            dash = True
        elif word not in ("Nm", "Ar", "Cm"):
            shown.append("-" + word if dash else word)
            dash = False
    return begin + " ".join(shown) + end


def synopses(text):
    """One string per usage; each starts with .Nm."""
    uses = []
    for line in section(text, "SYNOPSIS"):
        if line.startswith(".Nm "):
            uses.append(flatten(line))
        else:
            uses[-1] += " " + flatten(line)
    return uses


# ---- reading help ----

def help_commands(text):
    rows = text.split("\ncommands:\n")[1].split("\n\n")[0]
    return dict(re.findall(r"^  (\S+)\s+(.*)$", rows, re.M))


def help_options(text):
    return {(letter or None, name, value or None) for letter, name, value in
            re.findall(r"^  (?:-(\w), |    )--([\w-]+)(?: ([A-Z]\S*))?  +\S",
                       text.split("\noptions:\n")[1], re.M)}


def help_usages(text):
    lines = re.search(r"^usage: (.*(?:\n {7}.*)*)", text, re.M).group(1)
    return [line.strip() for line in lines.splitlines()]


# ---- comparisons, which return lists of problems ----

def differences(what, true, shown):
    return [f"{what} {row} is not in the page" for row in true - shown] + \
           [f"{what} {row} is in the page only" for row in shown - true]


def option_problems(help_text, text):
    items = {item_option(line) for line in text.splitlines() if line.startswith(".It Fl ")}
    return differences("option", help_options(help_text), items)


def mention_problems(text, known):
    """Options mentioned in running text must exist in some command."""
    names = re.findall(r"\bFl -([\w-]+)", text)
    return [f"--{name} is no option of any command" for name in names if name not in known]


def usage_problems(help_text, text):
    usages, shown = help_usages(help_text), synopses(text)
    return [] if usages == shown else [f"usage {usages}, synopsis {shown}"]


def summary_problems(summary, text):
    shown = re.search(r"^\.Nd (.*)$", text, re.M).group(1)
    return [] if shown == summary else [f"help says '{summary}', the page '{shown}'"]


def environment_problems(names, text):
    shown = set(listed(section(text, "ENVIRONMENT"), "Ev"))
    return [f"{name} is not in ENVIRONMENT" for name in sorted(set(names) - shown)]


def column_problems(header, text, title):
    columns, shown = header.strip().split(","), listed(section(text, title), "Cm")
    return [] if columns == shown else [f"columns {columns}, the page has {shown}"]


def json_keys(value):
    """Every key in a document, except those of "facts", which depend on the hardware."""
    if isinstance(value, list):
        return set().union(*map(json_keys, value))
    if not isinstance(value, dict):
        return set()
    return set(value).union(*(json_keys(inner) for key, inner in value.items() if key != "facts"))


def key_problems(document, lines):
    keys, shown = json_keys(document), set(marked(lines, "Cm"))
    return [f"key {key} is not in the page" for key in sorted(keys - shown)] + \
           [f"{key} is in the page, and no key" for key in sorted(shown - keys)]


def prototypes_of_header(header):
    found = re.findall(r"^IPW_API (.*?)(ipw_\w+)\(([^)]*)\);", header, re.M)
    return {(name, kind.strip(), " ".join(arguments.split())) for kind, name, arguments in found}


def prototypes_of_page(text):
    found, kind = set(), None
    for line in section(text, "SYNOPSIS"):
        words = words_of(line)
        if words[0] == ".Ft":
            kind = words[1]
        elif words[0] == ".Fn":
            found.add((words[1], kind, ", ".join(words[2:])))
    return found


def library_problems(header, text):
    header = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    problems = differences("prototype", prototypes_of_header(header), prototypes_of_page(text))
    names = set(re.findall(r"^\.Nm (\w+)", text, re.M)) - {"libipw"}
    functions = {name for name, _, _ in prototypes_of_header(header)}
    problems += differences("NAME", functions, names)
    constants = set(re.findall(r"^    (IPW_\w+) = ", header, re.M)) | \
        set(re.findall(r"^#define (IPW_\w+_INIT)", header, re.M))
    shown = {word for word in re.findall(r"Dv (IPW_\w+)", text)}
    problems += differences("constant", constants, shown)
    members = set()
    for body in re.findall(r"^typedef struct \w+ \{(.*?)^\}", header, re.M | re.S):
        members |= set(re.findall(r"(\w+)(?:\[\d+\])?;", body))
    return problems + differences("member", members, set(listed(text.splitlines(), "Va")))


# ---- the real pages ----

class Pages(unittest.TestCase):
    def setUp(self):
        self.help = ipw(None, "--help").stdout
        self.commands = help_commands(self.help)

    def each(self):
        for command in [*self.commands, *TOOLS]:
            yield ipw(None, *command.split(), "--help").stdout, command_page(command), command

    def test_every_command_has_a_page(self):
        names = [*self.commands, *(tool.replace(" ", "-") for tool in TOOLS)]
        self.assertEqual({f"ipw-{name}.1" for name in names} | {"ipw.1"},
                         {path.name for path in MAN.glob("ipw*.1")})

    def test_pages_of_other_programs_list_their_options(self):
        """Exactly the options of their help."""
        for name, section_number in (("energy-monitor", 1), ("ipw-reader", 8)):
            program = Path(os.environ.get("IPW", "build/ipw")).resolve().parent / name
            if not program.exists():
                continue  # built where its libraries are
            helped = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=60).stdout
            mentioned = set(re.findall(r"(?:^  |[[])--([a-z][\w-]*)", helped, re.M)) - {"help", "version"}
            listed_here = set(re.findall(r"^\.It Fl -([\w-]+)", page(f"{name}.{section_number}"), re.M))
            self.assertEqual(listed_here - {"help", "version"}, mentioned, name)

    def test_ipw_1_lists_all_commands(self):
        lines = section(page("ipw.1"), "DESCRIPTION")
        methods = {"counter", "integral", "estimated"}
        self.assertEqual(set(listed(lines, "Cm")) - methods, set(self.commands))
        text = page("ipw.1")
        for command, summary in self.commands.items():
            self.assertIn(f".It Cm {command}\n{summary}; see\n.Xr ipw-{command} 1\n", text)

    def test_options_equal_help(self):
        for help_text, text, command in self.each():
            self.assertEqual(option_problems(help_text, text), [], command)

    def test_output_is_a_file_in_every_command(self):
        """-o, --output: a file; a directory is --output-dir, without a letter."""
        options = [option for help_text, _, _ in self.each() for option in help_options(help_text)
                   if option[0] == "o" or option[1] in ("output", "output-dir")]
        self.assertEqual(set(options), {("o", "output", "FILE"), (None, "output-dir", "DIR")})

    def test_options_of_the_program(self):
        text = page("ipw.1")
        items = [item_option(line) for line in text.splitlines() if line.startswith(".It Fl ")]
        self.assertEqual(items, [("h", "help", None), ("V", "version", None)])
        for letter, name, _ in items:
            for word in (f"-{letter}", f"--{name}", name):
                self.assertEqual(ipw(None, word).returncode, 0, word)
            self.assertIn(f"--{name}", self.help)

    def test_mentioned_options_exist(self):
        known = {"version", "help"}
        for help_text, _, _ in self.each():
            known |= {name for _, name, _ in help_options(help_text)}
        for path in MAN.glob("ipw*.1"):
            self.assertEqual(mention_problems(path.read_text(), known), [], path.name)

    def test_synopsis_equals_usage(self):
        self.assertEqual(usage_problems(self.help, page("ipw.1")), [])
        for help_text, text, _ in self.each():
            self.assertEqual(usage_problems(help_text, text), [])

    def test_name_lines_equal_summaries(self):
        for help_text, text, command in self.each():
            summary = self.commands.get(command) or help_text.split(" - ")[1].splitlines()[0]
            self.assertEqual(summary_problems(summary, text), [])

    def test_environment_variables_of_help_are_documented(self):
        names = re.findall(r"\b([A-Z][A-Z_]+)=", self.help.split("\nenvironment:")[1])
        self.assertLessEqual({"IPW_SYSROOT", "IPW_LOG", "NO_COLOR"}, set(names))
        self.assertEqual(environment_problems(names, page("ipw.1")), [])

    def test_environment_variables_of_source_are_documented(self):
        names = set()
        for path in (SOURCE / "src").rglob("*.c"):
            names |= set(re.findall(r'getenv\("(\w+)"\)', path.read_text()))
        self.assertIn("TMPDIR", names)
        self.assertEqual(environment_problems(names, page("ipw.1")), [])

    def test_drivers_are_documented(self):
        listing = (SOURCE / "src/sensors/sensors.def").read_text()
        drivers = re.findall(r"^SENSOR\((\w+)\)", listing, re.M)
        shown = listed(section(command_page("doctor"), "DESCRIPTION"), "Cm")
        self.assertEqual([name for name in shown if name in drivers],
                         [name for name in drivers if name != "null"])

    def test_library_page_equals_header(self):
        header = (SOURCE / "include/ipw.h").read_text()
        self.assertEqual(library_problems(header, page("libipw.3")), [])

    def test_cross_references_exist(self):
        for path in MAN.iterdir():
            for name, number in re.findall(r"^\.Xr ((?:lib)?ipw\S*) (\d)", path.read_text(), re.M):
                self.assertTrue((MAN / f"{name}.{number}").exists(), f"{path.name}: {name}")

    @unittest.skipUnless(shutil.which("mandoc"), "mandoc is not installed")
    def test_mandoc_lint_passes(self):
        for path in sorted(MAN.iterdir()):
            done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", path],
                                  capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""), path.name)


class Formats(MachineTest):
    """Columns and keys as written on a machine with all kinds of sensors."""

    def setUp(self):
        self.fake = self.machine(Fixture, "intel2", watts=100)
        script = self.fake.put("/nvml.txt", "devices 1\npower 0 constant 300\nprocess 0 4242 1e9 10")
        (self.fake.root / "proc/self/ns").mkdir(parents=True)
        os.symlink("pid:[4026531836]", self.fake.root / "proc/self/ns/pid")
        self.env = {"IPW_NVML": FAKE_NVML, "IPW_FAKE_NVML": str(script),
                    "CUDA_VISIBLE_DEVICES": "0"}

    def run_ipw(self, *arguments):
        done = ipw(self.fake, *arguments, env=self.env)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_energy_csv(self):
        header = self.run_ipw("energy", "--once", "--format", "csv").stdout.splitlines()[0]
        self.assertEqual(column_problems(header, command_page("energy"), "CSV COLUMNS"), [])
        help_text = " ".join(ipw(None, "energy", "--help").stdout.split())
        for column in header.split(","):
            self.assertRegex(help_text, rf"\b{column}\b")

    def test_energy_json(self):
        reading = json.loads(self.run_ipw("energy", "--once", "--json").stdout)
        # Nested objects are documented in ipw-run(1); the rest on this page.
        shared = set(marked(section(command_page("run"), "JSON REPORT"), "Cm"))
        own = section(command_page("energy"), "JSON LINES")
        self.assertEqual(set(listed(own, "Cm")) - json_keys(reading), set())
        self.assertEqual(json_keys(reading) - shared - set(listed(own, "Cm")), set())
        self.assertEqual([key for key in reading if key not in listed(own, "Cm")], [])

    def test_run_json_and_samples(self):
        samples = self.fake.root / "samples.csv"
        report, done = self.run_json(self.fake, "--idle", "0.3", "--samples", samples, *PRICES, "--",
                                     "sleep", "0.5", env=self.env)
        self.assertEqual(done.returncode, 0, done.stderr)
        text = command_page("run")
        self.assertEqual(key_problems(report, section(text, "JSON REPORT")), [])
        gpu = next(row for row in report["devices"] if row["id"] == "gpu0")
        self.assertEqual(gpu["throttle"], "none")
        with samples.open() as file:
            self.assertEqual(column_problems(file.readline(), text, "SAMPLES"), [])

    def test_doctor_json(self):
        findings = json.loads(self.run_ipw("doctor", "--json").stdout)
        del findings["host"]  # described in ipw-run(1)
        shown = section(command_page("doctor"), "JSON REPORT")
        self.assertEqual(key_problems(findings | {"host": None}, shown), [])

    def test_list_json(self):
        listing = json.loads(self.run_ipw("list", "datasets", "--json").stdout)
        listing |= json.loads(self.run_ipw("list", "models", "--json").stdout)
        shown = section(command_page("list"), "JSON REPORT")
        self.assertEqual(key_problems(listing, shown), [])

    def test_compare_json(self):
        runs = self.fake.root / "compared"
        done = self.run_ipw("profile", "--client", "null", "--model", "m", "--max-queries", "3",
                            "--warmup-queries", "0", "--idle", "0", "--json", "--output-dir", runs)
        run, text = json.loads(done.stdout)["output_dir"], command_page("compare")
        report = json.loads(self.run_ipw("compare", run, run, "--json", "--fail-if",
                                         "latency > 1%").stdout)
        metrics = report["comparisons"][0]["metrics"]
        names = listed(section(text, "DESCRIPTION"), "Cm")
        self.assertEqual(set(metrics), set(names))
        report["comparisons"][0]["metrics"] = metrics["latency"]
        self.assertEqual(key_problems(report, section(text, "JSON REPORT")), [])
        header = self.run_ipw("compare", run, run, "--format", "csv").stdout.splitlines()[0]
        self.assertEqual(column_problems(header, text, "CSV COLUMNS"), [])

    def test_estimate_json(self):
        words = ["estimate", "--hardware", "l4", "--max-power-w", "1e6", *PRICES, "--json", "--model"]
        report = json.loads(self.run_ipw(*words, "gpt2", "--pipeline-parallel", "2").stdout)
        several = json.loads(self.run_ipw(*words, "resnet18", "--batch", "1,2").stdout)
        compared = json.loads(self.run_ipw("estimate", "--model", "resnet18", "--compare-models", "resnet50",
                                           "--hardware", "l4", "--json").stdout)
        shown = section(command_page("estimate"), "JSON REPORT")
        self.assertEqual(key_problems([report, several, compared], shown), [])

    def test_estimate_csv(self):
        words = ["estimate", "--hardware", "l4", "--model", "resnet18", *PRICES, "--format", "csv"]
        text = command_page("estimate")
        for more, title in (([], "CSV COLUMNS"), (["-v"], "CSV OF SUBGRAPHS")):
            header = self.run_ipw(*words, *more).stdout.splitlines()[0]
            self.assertEqual(column_problems(header, text, title), [])

    def test_exports(self):
        listing = json.loads(self.run_ipw("list", "exports", "--json").stdout)
        names = [row["name"] for row in listing["exports"]]
        self.assertEqual(names, listed(section(command_page("export"), "DESCRIPTION"), "Cm"))

    def test_profile_json_and_files(self):
        runs = self.fake.root / "runs"
        done = self.run_ipw("profile", "--client", "null", "--model", "m", "--max-queries", "2",
                            "--warmup-queries", "0", "--idle", "0.2", "--json", "--output-dir",
                            runs)
        report, text = json.loads(done.stdout), command_page("profile")
        # The page documents the keys for scripts; docs/formats.md the others.
        shown = section(text, "JSON REPORT")
        self.assertEqual(set(listed(shown, "Cm")) - set(report), set())
        self.assertEqual(set(marked(shown, "Cm")) - json_keys(report), set())
        files = {path.name for path in Path(report["output_dir"]).iterdir()} - {".lock"}
        files |= {path.name for path in runs.glob("*.db")}
        self.assertLess(2, len(files))
        self.assertEqual(files - set(marked(section(text, "FILES"), "Pa")), set())


class LibraryExample(MachineTest):
    def test_library_example_compiles_and_measures(self):
        blocks = re.findall(r"^\.Bd -literal\n(.*?)^\.Ed", page("libipw.3"), re.M | re.S)
        self.assertEqual(len(blocks), 1)
        machine = self.machine(Fixture, "intel2", watts=100)
        source = machine.put("/work.c", blocks[0].replace("\\e", "\\"))
        program = machine.root / "work"
        build(source, f"-I{SOURCE}/include", f"-L{BUILD}", "-lipw", f"-Wl,-rpath,{BUILD}", "-o",
              program)
        for _ in range(10):  # its work is short, so the counter may not change
            done = subprocess.run([program], env=machine.environment(), capture_output=True,
                                  text=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)
            if "energy unknown" not in done.stdout:
                break
        self.assertRegex(done.stdout, r"^[\d.]+ s, [\d.]+ J \+- [\d.]+\n$")


# ---- injected faults ----

class InjectedFaults(unittest.TestCase):
    """Each comparison reports the fault of a page."""

    HELP = ("ipw x - does x\n\nusage: ipw x [--count N] [OPTIONS]\n\noptions:\n"
            "  -n, --count N                how many\n      --json                   as JSON\n"
            "  -h, --help                   this text\n")
    PAGE = (".Sh NAME\n.Nm ipw-x\n.Nd does x\n.Sh SYNOPSIS\n.Nm ipw x\n.Op Fl -count Ar N\n"
            ".Op Ar OPTIONS\n.Sh DESCRIPTION\n.It Fl n , Fl -count Ar N\n.It Fl -json\n"
            ".It Fl h , Fl -help\n.Sh COLUMNS\n.It Cm a\n.It Cm b , c\n"
            ".Sh ENVIRONMENT\n.It Ev A , B\n")

    def test_correct_page_has_no_problems(self):
        self.assertEqual(option_problems(self.HELP, self.PAGE), [])
        self.assertEqual(usage_problems(self.HELP, self.PAGE), [])
        self.assertEqual(summary_problems("does x", self.PAGE), [])
        self.assertEqual(environment_problems({"A", "B"}, self.PAGE), [])
        self.assertEqual(column_problems("a,b,c\n", self.PAGE, "COLUMNS"), [])
        self.assertEqual(key_problems([{"a": {"b": 1}, "c": 2}], section(self.PAGE, "COLUMNS")), [])
        self.assertEqual(mention_problems(self.PAGE, {"count", "json", "help"}), [])

    def test_detects_option_faults(self):
        for old, new in ((".It Fl -json\n", ""), ("Fl n , ", ""), ("Ar N\n.It", "Ar M\n.It"),
                         (".It Fl -json\n", ".It Fl -json\n.It Fl -more\n")):
            self.assertNotEqual(option_problems(self.HELP, self.PAGE.replace(old, new)), [], old)
        self.assertNotEqual(mention_problems(self.PAGE, {"count", "help"}), [])

    def test_detects_usage_and_summary_faults(self):
        for old, new in ((".Op Ar OPTIONS\n", ""), (".Op Fl -count", ".Fl -count"),
                         ("Ar N\n.Op", "\n.Op")):
            self.assertNotEqual(usage_problems(self.HELP, self.PAGE.replace(old, new)), [], old)
        self.assertNotEqual(summary_problems("does y", self.PAGE), [])

    def test_detects_environment_column_and_key_faults(self):
        self.assertNotEqual(environment_problems({"A", "C"}, self.PAGE), [])
        for header in ("a,c,b", "a,b", "a,b,c,d"):
            self.assertNotEqual(column_problems(header, self.PAGE, "COLUMNS"), [], header)
        for document in ({"a": 1, "b": 2}, {"a": 1, "b": [{"c": 1, "d": 2}]}):
            self.assertNotEqual(key_problems(document, section(self.PAGE, "COLUMNS")), [])

    def test_detects_library_faults(self):
        header, text = (SOURCE / "include/ipw.h").read_text(), page("libipw.3")
        for old in (".Fn ipw_version void\n", ".Nm ipw_end ,\n", ".It Va coverage\n",
                    ".It Dv IPW_ERROR_OPEN\n"):
            self.assertIn(old, text)
            self.assertEqual(len(library_problems(header, text.replace(old, ""))), 1, old)
        changed = header.replace("int *status", "long *status")
        self.assertNotEqual(library_problems(changed, text), [])

    @unittest.skipUnless(shutil.which("mandoc"), "mandoc is not installed")
    def test_mandoc_detects_faults(self):
        with tempfile.NamedTemporaryFile("w", suffix=".1") as file:
            file.write(page("ipw.1").replace(".El\n", "", 1))
            file.flush()
            done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", file.name],
                                  capture_output=True)
            self.assertNotEqual(done.returncode, 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
