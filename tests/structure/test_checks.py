#!/usr/bin/env python3
"""Tests of the structure checks: on a copy of the source tree with one injected fault, a check must exit with status 1
and report the location.  Problems that a check reports for the unmodified tree are ignored here."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ.get("IPW_BUILD", ROOT / "build"))
COMMANDS = json.loads((BUILD / "compile_commands.json").read_text())
BASELINE = {}


class Scratch(unittest.TestCase):
    """A copy of the lowest folder of the tree and of what the faults need, so that the run time does not grow with the
    tree; its compile commands name the objects of the real build, so nothing is rebuilt."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ipw-structure-")
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name).resolve()
        for name in ("src/core", "tools"):
            shutil.copytree(ROOT / name, self.root / name, ignore=shutil.ignore_patterns("__*"))
        for name in ("src/port/fs.h", "src/port/fs.c", "src/sensors/null.c"):
            self.write(name, (ROOT / name).read_text())
        (self.root / "build").mkdir()
        self.commands = []
        for entry in COMMANDS:
            path = self.root / os.path.relpath(entry["file"], ROOT)
            if path.exists():
                command = entry["command"].replace(f"-I{ROOT}/", f"-I{self.root}/")
                self.commands.append(entry | {"file": str(path), "command": command})

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def compile(self, name, text):
        self.write(name, text)
        words = shlex.split(self.commands[0]["command"])
        source, output = str(self.root / name), str(self.root / "build" / name.replace("/", "_"))
        words[words.index("-o") + 1] = output
        words[-1] = source
        subprocess.run(words, check=True)
        self.commands.append({"file": source, "directory": "/", "command": shlex.join(words)})

    def run_check(self, check):
        """The exit status and the set of problems."""
        path = self.root / "build" / "compile_commands.json"
        path.write_text(json.dumps(self.commands))
        result = subprocess.run([sys.executable, self.root / "tools" / check], capture_output=True, text=True,
                                check=False)
        *problems, summary = result.stdout.splitlines() or [""]
        self.assertTrue(summary.startswith(check), result.stdout + result.stderr)
        return result.returncode, set(problems)

    def new_problems(self, check):
        """The problems that the unmodified tree does not have."""
        if check not in BASELINE:
            clean = Scratch()
            clean.setUp()
            BASELINE[check] = clean.run_check(check)[1]
            clean.doCleanups()
        code, problems = self.run_check(check)
        self.assertEqual(code, 1 if problems else 0)
        return problems - BASELINE[check]

    def passes(self, check):
        self.assertEqual(self.new_problems(check), set())

    def fails(self, check, *expected):
        self.fails_each(check, [expected])

    def fails_each(self, check, faults):
        """One run of the check finds every injected fault and nothing else; `faults` has the expected substrings of
        each line."""
        new_problems = self.new_problems(check)
        self.assertEqual(len(new_problems), len(faults), new_problems)
        for texts in faults:
            found = [line for line in new_problems if all(text in line for text in texts)]
            self.assertEqual(len(found), 1, (texts, new_problems))


class Layers(Scratch):
    def include(self, source, line, *expected):
        self.write(source, f"/* planted */\n{line}\n")
        self.fails("check-layers", f"{source}:2: ", *expected)

    def test_rejects_upward_include(self):
        self.include("src/core/planted.h", '#include "port/fs.h"', "core is below port")

    def test_rejects_include_of_same_layer(self):
        self.include("src/clients/planted.h", '# include "sensors/sensor.h"', "are on one level")

    def test_rejects_include_of_unknown_folder(self):
        self.include("src/core/planted.h", '#include "misc/x.h"', "misc is not in")

    def test_rejects_relative_include(self):
        self.include("src/port/planted.h", '#include "../core/err.h"', "from src/")

    def test_rejects_include_without_folder(self):
        self.include("src/port/planted.h", '#include "fs.h"', "from src/")

    def test_rejects_own_header_in_angle_brackets(self):
        self.include("src/port/planted.h", "#include <core/err.h>", "in quotes")

    def test_rejects_public_header_outside_api(self):
        self.include("src/core/planted.h", "#include <ipw.h>", "only api")

    def test_accepts_public_header_in_api(self):
        self.write("src/api/planted.h", '#include "ipw.h"\n')
        self.passes("check-layers")

    def test_rejects_include_of_sibling_subfolder(self):
        self.include("src/sensors/rapl/planted.h", '#include "sensors/nvml/api.h"', "private to themselves")

    def test_rejects_include_of_private_subfolder(self):
        self.include("src/sampler/planted.h", '#include "sensors/nvml/api.h"', "private to sensors")

    def test_accepts_include_of_visible_subfolders(self):
        self.write("src/sensors/planted.h", '#include "sensors/nvml/api.h"\n')
        self.write("src/report/planted.h", '#include "sensors/system/host_info.h"\n')
        self.write("src/sensors/nvml/planted.h", '#include "sensors/system/host_info.h"\n')
        self.write("src/sensors/nvml/nvml.h", "")
        self.write("src/sampler/planted.h", '#include "sensors/nvml/nvml.h"\n')
        self.passes("check-layers")

    def test_ignores_commented_include(self):
        self.write("src/core/planted.h", '/*\n#include "port/fs.h"\n*/\n')
        self.passes("check-layers")

    def test_rejects_file_in_unknown_folder(self):
        self.write("src/misc/planted.h", "\n")
        self.fails("check-layers", "src/misc/planted.h: not in a folder")

    def test_rejects_header_cycle(self):
        self.write("src/core/planted_a.h", '#include "core/planted_b.h"\n')
        self.write("src/core/planted_b.h", '#include "core/planted_a.h"\n')
        self.fails("check-layers", "src/core/planted_a.h -> src/core/planted_b.h")

    def test_rejects_upward_call(self):
        self.compile("src/core/planted.c", "_Bool fs_exists(const char *);\nint planted(void);\n"
                     'int planted(void) { return fs_exists("/"); }\n')
        self.fails("check-layers", "src/core/planted.c: uses fs_exists of src/port/fs.c: core is")

    def test_rejects_use_of_data_of_same_layer(self):
        self.compile("src/clients/planted.c", "extern const int sensor_null;\nint planted(void);\n"
                     "int planted(void) { return sensor_null; }\n")
        self.fails("check-layers", "src/clients/planted.c: uses sensor_null", "on one level")

    def test_rejects_call_cycle(self):
        for one, other in ("ab", "ba"):
            self.compile(f"src/graph/planted_{one}.c", f"int {one}(void);\nint {other}(void);\n"
                         f"int {one}(void) {{ return {other}(); }}\n")
        self.fails("check-layers", "files call each other: src/graph/planted_a.c -> ")

    def test_rejects_duplicate_definition(self):
        self.compile("src/graph/planted.c", "_Bool fs_exists(const char *);\n"
                     "_Bool fs_exists(const char *path) { return path != 0; }\n")
        self.fails("check-layers", "fs_exists is also defined in ")

    def test_rejects_source_without_object(self):
        self.commands.append({"file": f"{self.root}/src/core/x.c", "directory": "/",
                              "command": "cc -o /nowhere/x.o -c x.c"})
        self.fails("check-layers", "src/core/x.c: not built")


class Headers(Scratch):
    def test_rejects_headers_that_do_not_compile_alone(self):
        guarded = "#ifndef PLANTED\n#define PLANTED\nsize_t planted(void);\n#endif\n"
        self.write("src/core/planted_alone.h", "size_t planted(void);\n")
        self.write("src/core/planted_twice.h", "struct planted { int x; };\n")
        self.write("src/core/planted_twice.c", '#include "core/planted_twice.h"\n')
        self.write("src/core/planted_later.h", guarded)
        self.write("src/core/planted_later.c", '#include <stddef.h>\n\n#include "core/planted_later.h"\n')
        faults = [("src/core/planted_alone.h: does not compile alone", "size_t"),
                  ("src/core/planted_twice.h: ", "redefinition"),
                  ("src/core/planted_later.h: does not compile alone", "size_t")]
        if shutil.which("g++"):
            self.write("include/planted.h", "int planted(int new);\n")
            faults.append(("include/planted.h: ",))
        self.fails_each("check-headers", faults)

    def test_accepts_headers_that_the_build_compiled_alone(self):
        self.write("src/core/planted.h", "/* planted */\n#ifndef PLANTED\n#define PLANTED\nint *planted(void);\n"
                   "#endif /* PLANTED */\n")
        self.write("src/core/planted.c", '/* planted */\n#include "core/planted.h"\n')
        self.passes("check-headers")


class Functions(Scratch):
    def calls(self, *faults):
        """Writes one file per fault (folder, line, expected message) with that line."""
        for n, (folder, line, _) in enumerate(faults):
            self.write(f"{folder}/planted{n}.c", f"void planted(void)\n{{\n    {line}\n}}\n")
        self.fails_each("check-functions", [(f"{folder}/planted{n}.c:3: ", said)
                                            for n, (folder, _, said) in enumerate(faults)])

    def test_rejects_long_files(self):
        limits = {"src/core/planted.c": 900, "src/core/planted.h": 250}
        for name, limit in limits.items():
            self.write(name, "\n" * limit)
        self.passes("check-functions")
        for name, limit in limits.items():
            self.write(name, "\n" * (limit + 1))
        self.fails_each("check-functions", [(f"{name}: {limit + 1} lines",) for name, limit in limits.items()])

    def test_rejects_long_function(self):
        body = "static int planted(int a,\n                   int b)\n{\n" + "    a++;\n" * 96
        self.write("src/core/planted.c", body + "}\n")
        self.passes("check-functions")
        self.write("src/core/planted.c", body + "    b++;\n}\n")
        self.fails("check-functions", "src/core/planted.c:1: planted has 101 lines")

    def test_rejects_banned_functions(self):
        names = "strcpy strcat sprintf gets strtok atoi atof localtime system popen".split()
        self.calls(*(("src/cli", f"{name}(x);", f"{name} is banned") for name in names))

    def test_rejects_json_parsing_above_wire(self):
        line = "jv_parse(x, 1, &y, 0);"
        self.write("src/wire/planted.c", f"void f(void)\n{{\n    {line}\n}}\n")
        self.passes("check-functions")
        self.calls(*((f"src/{layer}", line, "layers pass structs, not JSON text")
                     for layer in ("rundir", "analysis", "report", "cli", "runner", "api")))

    def test_rejects_printing_and_exiting_outside_cli(self):
        self.calls(*(("src/port", line, "outside src/cli")
                     for line in ('printf("x");', "exit(1);", "abort();", "fputs(x, stderr);")))

    def test_rejects_printing_outside_common_c(self):
        self.write("src/cli/planted.c", "void f(void)\n{\n    exit(1);\n}\n")
        self.passes("check-functions")
        self.calls(*(("src/cli", line, "outside src/cli/common.c") for line in ('printf("x");', "fputs(x, stderr);")))

    def test_ignores_comments_strings_and_longer_names(self):
        self.write("src/core/planted.c", '/* sprintf(x) exit(1)\n * printf(y) */\nvoid f(void)\n{\n'
                   '    g("system(\\"x\\") abort()"); // atoi(x)\n    my_exit(1); s->exit(1);\n'
                   "    localtime_r(t, u);\n}\n")
        self.passes("check-functions")

    def test_rejects_fixme_comments(self):
        self.calls(*((folder, "/* FIX" + "ME later */", "FIX" + "ME") for folder in ("src/core", "tests/unit/core")))

    def test_reports_stale_exception(self):
        with open(self.root / "tools/allow.txt", "a", encoding="utf-8") as file:
            file.write("call src/core/err.c exit planted\n")
        self.fails("check-functions", "tools/allow.txt:", "exit in src/core/err.c is no longer")


class Unused(Scratch):
    """The exceptions of the tree may have broad patterns, so these tests only look at the injected function."""

    def plant(self, more="", allow=""):
        self.write("tools/allow.txt", allow)
        self.write("src/graph/planted.h", "int planted(void);\n")
        self.compile("src/graph/planted.c", '#include "graph/planted.h"\n'
                     f"int planted(void) {{ return 1; }}\n{more}")

    def problems_of_planted(self):
        code, problems = self.run_check("check-unused")
        self.assertEqual(code, 1)
        return [line for line in problems if "plant" in line]

    def test_reports_unused_function(self):
        self.plant()
        self.assertEqual(self.problems_of_planted(), ["src/graph/planted.c: planted is unused"])

    def test_reports_function_used_in_its_own_file_only(self):
        self.plant("extern int (*const row)(void);\nint (*const row)(void) = planted;\n")
        self.assertEqual(self.problems_of_planted(), [
            "src/graph/planted.c: planted is used in this file only: make it static"])

    def test_reports_function_used_by_tests_only(self):
        self.plant()
        self.compile("tests/unit/graph/test_planted.c", "int planted(void);\nint main(void);\n"
                     "int main(void) { return planted(); }\n")
        self.assertEqual(self.problems_of_planted(), ["src/graph/planted.c: planted is used by tests only"])

    def test_accepts_function_used_by_another_file(self):
        self.plant()
        self.compile("src/cli/user.c", "int planted(void);\nint main(void);\n"
                     "int main(void) { return planted(); }\n")
        self.assertEqual(self.problems_of_planted(), [])

    def test_exception_suppresses_problem(self):
        self.plant(allow="unused src/graph/* plant* reason\n")
        self.assertEqual(self.problems_of_planted(), [])

    def test_reports_stale_exception(self):
        self.write("tools/allow.txt", "unused src/graph/* plant* reason\n")
        self.assertEqual(self.problems_of_planted(), [
            "tools/allow.txt:1: plant* in src/graph/* is no longer an exception"])


class Rundir(Scratch):
    def plant(self, folder, *strings):
        for n, string in enumerate(strings):
            self.write(f"src/{folder}/planted{n}.c", f"/* planted */\nconst char *name = {string};\n")

    def test_rejects_file_names_outside_rundir(self):
        names = '"records.jsonl"', '"%s/spans.jsonl"', '"%s/samples-%u.csv"', '"data-[0-9]*.arrow"', '"a/.lock"', \
            '"%s/report.html"', '"analysis/%s.json"', '"%s/plots"', '"%s/slurm/"'
        self.plant("port", *names)
        self.fails_each("check-rundir", [(f"src/port/planted{n}.c:2: ", "is a file of a run directory")
                                         for n in range(len(names))])

    def test_rejects_listing_of_directories_by_readers(self):
        text = "/* scandir( */\nint f(void)\n{\n    return scandir(a, &b, 0, 0);\n}\n"
        for folder in ("report", "serve", "power"):
            self.write(f"src/{folder}/planted.c", text)
        self.fails_each("check-rundir", [(f"src/{folder}/planted.c:4: ", "scandir: rundir lists the files of a run")
                                         for folder in ("report", "serve")])

    def test_accepts_file_names_within_messages(self):
        self.plant("port", '"see records.jsonl in %s"', '"my_summary.json"', '"samples.csv of"', '"plots"')
        self.passes("check-rundir")

    def test_accepts_file_names_in_rundir_and_comments(self):
        self.plant("rundir", '"records.jsonl"')
        self.write("src/core/planted.h", '/* "%s/records.jsonl" */\n')
        self.passes("check-rundir")


class Headings(Scratch):
    """With the names of the real record.def: "energy per query", "J/query"."""

    def setUp(self):
        super().setUp()
        self.write("src/rundir/record.def", (ROOT / "src/rundir/record.def").read_text())

    def test_rejects_names_of_figures(self):
        for name, line in (("text", 'struct table_column c[] = {{"run", false}, {"J/query", true}};'),
                           ("axis", 'figure_panel(f, "energy ({J} per query)", "queries");'),
                           ("share", 'const char *label = "accuracy (%)";'),
                           ("tokens", 'const char *label = "Prompt (tokens)";'),
                           ("title", 'draw_heading(f, table, "Time to first token", 1, "");')):
            self.write(f"src/report/{name}.c", f'#include "rundir/summary.h"\n{line}\n')
        self.write("web/report/a.js", 'x = [{ key: "other", label: "Per query" }, { key: "ipj", label: "i" }];\n'
                   'axis({ name: "accuracy" });\n')
        self.fails_each("check-headings", [
            ("src/report/text.c:2: 'J/query' is a name of record.def",), ("src/report/axis.c:2: 'energy ({J} per query)'",),
            ("src/report/share.c:2: 'accuracy (%)'",), ("src/report/tokens.c:2: 'Prompt (tokens)'",),
            ("src/report/title.c:2: 'Time to first token'",), ("web/report/a.js:1: 'Per query'",),
            ("web/report/a.js:1: 'ipj'",), ("web/report/a.js:2: 'accuracy'",)])

    def test_accepts_other_headings(self):
        line = 'struct table_column c[] = {{"run", false}, {"95 % CI", true}, FIGURE_COLUMN(ipj)}; /* {"IPJ", true} */'
        self.write("src/report/own.c", f'#include "rundir/summary.h"\n{line}\n')
        self.write("src/report/estimate.c", '#include "estimate/estimate.h"\nx = {{"latency", true}, {"TTFT", true}};\n')
        self.write("web/report/a.js", 'x = [{ key: "edp", label: "EDP" }, figureColumn("ipj")];\n')
        self.passes("check-headings")

    def test_rejects_definition_without_names(self):
        definition = self.root / "src/rundir/record.def"
        definition.write_text(definition.read_text().replace("LABEL(", "NAMED("))
        code, problems = self.run_check("check-headings")
        self.assertEqual(code, 1)
        self.assertIn("src/rundir/record.def: no names of figures", problems)


class RecordTable(Scratch):
    def test_rejects_tables_that_differ(self):
        definition = (ROOT / "src/rundir/record.def").read_text()
        self.write("docs/formats.md", (ROOT / "docs/formats.md").read_text())
        for text, code in ((definition, 0), (definition.replace('"reference answer"', '"another"'), 1),
                           (definition.replace("EXTRA(reasoning,", "FIELD(reasoning,"), 1)):
            self.write("src/rundir/record.def", text)
            done = subprocess.run([sys.executable, self.root / "tools/record-table", "--check"], capture_output=True, text=True)
            self.assertEqual(done.returncode, code, done.stderr)


class FindingTable(Scratch):
    def test_rejects_tables_that_differ(self):
        definition = (ROOT / "src/core/finding.def").read_text()
        self.write("docs/findings.md", (ROOT / "docs/findings.md").read_text())
        for text, code in ((definition, 0), (definition.replace('"throttled"', '"slow"'), 1),
                           (definition.replace('FINDING(THROTTLED, "throttled", WARNING', 'FINDING(THROTTLED, "throttled", NOTE'), 1)):
            self.write("src/core/finding.def", text)
            done = subprocess.run([sys.executable, self.root / "tools/finding-table", "--check"], capture_output=True, text=True)
            self.assertEqual(done.returncode, code, done.stderr)


class Fuzz(Scratch):
    """A tree with one reader and its fuzz target."""

    def setUp(self):
        super().setUp()
        shutil.rmtree(self.root / "src")
        self.write("src/wire/known.c", "int known_read(const char *bytes) { return (int)strtol(bytes, NULL, 10); }\n")
        self.write("tests/fuzz/targets.def", "FUZZ(numbers)\n")
        self.write("tests/fuzz/fuzz_numbers.c", '#include "support/numbers.h"\n')
        self.write("tests/support/numbers.c", "int numbers_check(void) { return known_read(); }\n")
        self.list_readers("src/wire/known.c numbers known_read")

    def list_readers(self, *lines):
        self.write("tests/fuzz/readers.txt", "\n".join(("# comment", *lines, "")))

    def assertReports(self, *expected):
        code, problems = self.run_check("check-fuzz")
        self.assertEqual((code, problems), (1 if expected else 0, set(expected)))

    def test_accepts_listed_readers(self):
        self.assertReports()
        self.write("src/wire/writer.c", "/* strtol() is not called */ void f(void) { puts(\"sscanf(\"); }\n")
        self.assertReports()

    def test_rejects_new_reader_without_target(self):
        for call in ("jv_parse(a, b, c, d)", "sscanf(a, b)", "csv_grid_read(a, b, c, d)", "fs_read_text(a, b, c)"):
            self.write("src/wire/planted.c", f"void planted(void) {{ {call}; }}\n")
            name = call.split("(")[0]
            self.assertReports(f"src/wire/planted.c: calls {name}: list it in tests/fuzz/readers.txt, with its fuzz "
                               "target")
        self.list_readers("src/wire/known.c numbers known_read", "src/wire/planted.c - a reason")
        self.assertReports()

    def test_rejects_table_that_does_not_match(self):
        self.list_readers("src/wire/known.c numbers known_reads", "src/wire/gone.c numbers x", "src/wire/known.c")
        self.assertReports("tests/fuzz/readers.txt: src/wire/known.c: fuzz_numbers.c does not use known_reads",
                           "tests/fuzz/readers.txt:3: src/wire/gone.c does not exist",
                           "tests/fuzz/readers.txt:4: expected: FILE TARGET NAME, or FILE - REASON")
        self.list_readers("src/wire/known.c letters known_read")
        self.assertReports("tests/fuzz/readers.txt: src/wire/known.c: tests/fuzz/targets.def has no target letters",
                           "tests/fuzz/targets.def: numbers: no file of tests/fuzz/readers.txt has this target")


class House(Scratch):
    """check-house also prints its figures; lines of problems start with the folder."""

    def assertReports(self, *texts):
        code, lines = self.run_check("check-house")
        self.assertEqual(code, 1)
        for text in texts:
            self.assertTrue(any(line.startswith(f"src: {text}") for line in lines), lines)

    def test_rejects_mutual_include_of_folder_and_subfolder(self):
        self.write("src/port/room/room.h", '#include "port/planted.h"\n')
        self.write("src/port/planted.h", '#include "port/room/room.h"\n')
        self.assertReports("parent/child two-way pairs: 1, bound <= 0: src/port/room")

    def test_rejects_source_beside_folder_of_same_name(self):
        self.write("src/port/room.c", "/* planted */\n")
        self.write("src/port/room/other.h", "")
        self.assertReports("X.c beside folder X/: 1, bound <= 0: src/port/room.c")

    def test_rejects_struct_tag_in_two_headers(self):
        for folder in ("core", "port"):
            self.write(f"src/{folder}/planted.h", "struct planted {\n    int x;\n};\n")
        self.assertReports("struct tags in two headers: 1, bound <= 0: planted")

    def test_rejects_includes_of_a_higher_folder(self):
        self.write("src/core/planted.c", '#include "port/room.h"\n')
        self.assertReports("upward includes: 1, bound <= 0: src/core/planted.c: port/room.h")

    def test_rejects_json_by_hand_and_folders_of_report_and_serve(self):
        folders = "".join(f'#include "planted{n}/room.h"\n' for n in range(10))
        for folder in ("report", "serve"):
            self.write(f"src/{folder}/planted.c", folders + 200 * "json_null(json, key);\n")
        self.assertReports("json_* calls in report, serve, cli: ", "folders included by report: ",
                           "folders included by serve: ")

    def test_counts_what_was_added(self):
        """Calls that write JSON, lines on lack of memory outside libipw, folders: comments aside."""
        counted = {"tokens in src", "json_* calls in report, serve, cli", "lines on lack of memory",
                   "folders included by report", "folders included by serve"}

        def figures():
            _, lines = self.run_check("check-house")
            return {line[:36].strip(): float(line[36:45]) for line in lines if line[:36].strip() in counted}

        before = figures()
        self.write("src/serve/planted.c", '#include "wire/room.h"\n/* json_null( */\n'
                   "json_string(json, key, x);\nif (text.failed || other)\n    return err_no_memory(why);\n")
        after = figures()
        self.assertEqual({name: after[name] - before.get(name, 0) for name in after},
                         {"tokens in src": 26, "json_* calls in report, serve, cli": 1, "lines on lack of memory": 2,
                          "folders included by report": 0, "folders included by serve": 1})

    def test_rejects_headers_without_users(self):
        for n in range(30):
            self.write(f"src/port/planted{n}.h", "")
        self.assertReports("headers with one user: ")


if __name__ == "__main__":
    unittest.main()
