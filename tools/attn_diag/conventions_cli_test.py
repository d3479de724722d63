#!/usr/bin/env python3
"""What other programs read of attn-diag: SARIF, compilers' lines, GitHub's annotations, completions, the manual; the
words that it explains; and the defaults of attn-diag.toml.

usage: conventions_cli_test.py PATH_TO_ATTN_DIAG [unittest arguments]
"""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = ""
SOURCE = pathlib.Path(__file__).resolve().parent / "testing" / "checked_rows.cu"
CASE = "--dtype fp32 --heads 1 --seqlen 40 --head-dim 8"
FAULT = "split_k@reduce-counts-l-twice"


def call(folder, line, **environment):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GITHUB_")}
    return subprocess.run([PROGRAM, *shlex.split(line)], cwd=folder, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=300,
                          env={**clean, "LC_ALL": "C.UTF-8", "ATTN_DIAG_HISTORY": "0", **environment})


def line_of(mark):
    lines = SOURCE.read_text().splitlines()
    return next(i for i, line in enumerate(lines, 1) if line.endswith(f"// [{mark}]"))


class InFolder(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="attn-diag-test-")).resolve()
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)

    def run_it(self, line, code, folder=None, **environment):
        result = call(folder or self.folder, line, **environment)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result


# What SARIF 2.1.0 demands of the objects that we write, and what it allows besides.
SARIF = {
    "log": ({"version", "runs"}, {"$schema"}),
    "run": ({"tool"}, {"invocations", "results", "originalUriBaseIds", "columnKind"}),
    "driver": ({"name"}, {"version", "rules"}),
    "rule": ({"id"}, {"shortDescription", "fullDescription", "help"}),
    "invocation": ({"executionSuccessful"}, {"commandLine", "exitCode"}),
    "result": ({"message"}, {"ruleId", "ruleIndex", "level", "locations", "relatedLocations", "suppressions"}),
    "location": (set(), {"id", "physicalLocation", "message"}),
    "physicalLocation": ({"artifactLocation"}, {"region"}),
    "artifactLocation": ({"uri"}, {"uriBaseId"}),
    "region": ({"startLine"}, {"startColumn"}),
}


class Located(InFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        (cls.folder / "src").mkdir()
        shutil.copy(SOURCE, cls.folder / "src")
        built = call(cls.folder, "build src/checked_rows.cu -o mine.so --no-nvcc")
        if built.returncode != 0:
            raise AssertionError(built.stderr)

    def has_form(self, kind, thing):
        needed, allowed = SARIF[kind]
        self.assertLessEqual(needed, set(thing), kind)
        self.assertLessEqual(set(thing), needed | allowed, kind)

    def check_location(self, location):
        self.has_form("location", location)
        if "physicalLocation" not in location:
            return
        self.has_form("physicalLocation", location["physicalLocation"])
        self.has_form("artifactLocation", location["physicalLocation"]["artifactLocation"])
        self.has_form("region", location["physicalLocation"]["region"])
        self.assertGreaterEqual(location["physicalLocation"]["region"]["startLine"], 1)

    def check_sarif(self, path):
        log = json.loads(path.read_text())
        self.has_form("log", log)
        self.assertEqual(log["version"], "2.1.0")
        for run in log["runs"]:
            self.has_form("run", run)
            self.has_form("driver", run["tool"]["driver"])
            for rule in run["tool"]["driver"]["rules"]:
                self.has_form("rule", rule)
            for invocation in run["invocations"]:
                self.has_form("invocation", invocation)
            for result in run["results"]:
                self.has_form("result", result)
                self.assertIn(result["level"], ("error", "warning", "note"))
                self.assertEqual(run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"], result["ruleId"])
                self.assertTrue(result["message"]["text"])
                for location in result["locations"] + result.get("relatedLocations", []):
                    self.check_location(location)
        return log["runs"][0]

    def test_sarif_of_a_race_has_both_lines_relative_to_the_folder(self):
        self.run_it(f"check --kernel ./mine.so:race {CASE} --sarif out.sarif", 1)
        run = self.check_sarif(self.folder / "out.sarif")
        places = set()
        for result in run["results"]:
            self.assertEqual(result["ruleId"], "race")
            for location in result["locations"] + result["relatedLocations"]:
                physical = location["physicalLocation"]
                self.assertEqual(physical["artifactLocation"], {"uri": "src/checked_rows.cu", "uriBaseId": "SRCROOT"})
                places.add(physical["region"]["startLine"])
        self.assertLessEqual({line_of("store of a score"), line_of("load of a score")}, places)
        self.assertEqual(run["originalUriBaseIds"]["SRCROOT"]["uri"], f"file://{self.folder}/")

    def test_sarif_of_what_is_right_has_no_results(self):
        self.run_it(f"check --kernel ./mine.so:whole {CASE} --sarif clean.sarif", 0)
        run = self.check_sarif(self.folder / "clean.sarif")
        self.assertEqual(run["results"], [])
        self.assertEqual(run["invocations"][0]["exitCode"], 0)

    def test_sarif_of_elsewhere_has_whole_uris(self):
        elsewhere = self.folder / "else where"
        elsewhere.mkdir()
        self.run_it(f"check --kernel ../mine.so:race {CASE} --sarif out.sarif", 1, folder=elsewhere)
        run = self.check_sarif(elsewhere / "out.sarif")
        uri = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
        self.assertEqual(uri, {"uri": f"file://{self.folder}/src/checked_rows.cu"})
        self.assertTrue(run["originalUriBaseIds"]["SRCROOT"]["uri"].endswith("/else%20where/"))

    def test_a_file_that_cannot_be_written_shows_before_the_work(self):
        result = self.run_it(f"check --kernel ./mine.so:whole {CASE} --sarif no/such/folder.sarif", 2)
        self.assertIn("no/such/folder.sarif", result.stderr)

    def test_lines_as_compilers_write_them(self):
        result = self.run_it(f"check --kernel ./mine.so:race {CASE} --format gcc", 1)
        lines = result.stdout.splitlines()
        self.assertTrue(all(re.match(r"^src/checked_rows\.cu:\d+: (error|note): .", line) for line in lines), lines)
        self.assertRegex(lines[0], r": error: .*\[race\]$")
        self.assertEqual(self.run_it(f"check --kernel ./mine.so:whole {CASE} --format gcc", 0).stdout, "")

    def test_a_trace_names_its_verdict_where_it_has_no_line(self):
        result = self.run_it(f"trace --kernel {FAULT} --mask causal --format gcc --sarif trace.sarif", 1)
        self.assertRegex(result.stdout, r"^attn-diag: error: DIVERGES: reduce diverges first.*\[diverges\]\n$")
        run = self.check_sarif(self.folder / "trace.sarif")
        self.assertEqual([r["ruleId"] for r in run["results"]], ["diverges"])
        self.assertEqual(self.run_it("trace --kernel fa1 --format gcc", 0).stdout, "")

    def test_annotations_by_themselves_on_github_and_only_there(self):
        line = f"check --kernel ./mine.so:race {CASE}"
        alone = self.run_it(line, 1)
        self.assertNotIn("::error", alone.stdout + alone.stderr)
        on_github = self.run_it(line, 1, GITHUB_ACTIONS="true")
        self.assertEqual(on_github.stdout, alone.stdout)
        self.assertRegex(on_github.stderr, r"(?m)^::error file=src/checked_rows\.cu,line=\d+,title=attn-diag%3A race::.")
        below = self.run_it(line, 1, GITHUB_ACTIONS="true", GITHUB_WORKSPACE=str(self.folder.parent))
        self.assertIn(f"file={self.folder.name}/src/checked_rows.cu,", below.stderr)
        as_asked = self.run_it(line + " --format github", 1)
        self.assertEqual(as_asked.stdout, on_github.stderr)
        self.assertNotIn("::", self.run_it(line + " --format text", 1, GITHUB_ACTIONS="true").stderr)

    def test_forms_that_do_not_go_together_or_do_not_exist(self):
        self.assertIn("--json and --format", self.run_it(f"check --kernel ./mine.so:whole {CASE} --json --format gcc",
                                                         2).stderr)
        self.assertIn("Did you mean github?", self.run_it("check --kernel fa1 --format githb", 2).stderr)

    def test_a_run_that_does_not_end_is_reported_in_the_same_forms(self):
        self.run_it("trace --kernel fa1 --seqlen 2048 --timeout 0.01 --format gcc --sarif crash.sarif", 2)
        run = self.check_sarif(self.folder / "crash.sarif")
        self.assertEqual([r["ruleId"] for r in run["results"]], ["crash"])
        self.assertFalse(run["invocations"][0]["executionSuccessful"])


class Completions(InFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for shell in "bash", "zsh", "fish", "man":
            (cls.folder / shell).write_text(call(cls.folder, f"completions {shell}").stdout)
        os.symlink(PROGRAM, cls.folder / "attn-diag")
        (cls.folder / "mine.so").touch()

    def in_bash(self, line):
        script = (f"source ./bash; COMP_LINE={shlex.quote(line)}; COMP_POINT=${{#COMP_LINE}}; "
                  "_attn_diag; printf '%s\\n' \"${COMPREPLY[@]}\"")
        done = subprocess.run(["bash", "--norc", "-c", script], cwd=self.folder, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env={**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}"})
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_bash_completes_commands_flags_and_values(self):
        self.assertEqual(self.in_bash("attn-diag tr"), ["trace"])
        self.assertEqual(self.in_bash("attn-diag trace --sof"), ["--softmax-scale"])
        self.assertEqual(self.in_bash("attn-diag trace --dtype b"), ["bf16"])
        self.assertEqual(self.in_bash("attn-diag trace --dtype=b"), ["bf16"])  # readline keeps "--dtype="
        self.assertEqual(self.in_bash("attn-diag run --dtype fp16,b"), ["fp16,bf16"])
        self.assertEqual(set(self.in_bash("attn-diag show x.h5 --stage ")), {"qk", "softmax", "pv", "reduce"})
        self.assertEqual(self.in_bash("attn-diag explain missing-f"), ["missing-fence"])
        self.assertEqual(self.in_bash("attn-diag trace --json --mask n"), ["none"])

    def test_bash_completes_after_a_colon_what_readline_takes_for_the_word(self):
        self.assertEqual(self.in_bash("attn-diag trace --mask causal:t"), ["top_left"])
        self.assertEqual(self.in_bash("attn-diag trace --schedule lockstep:r"), ["reverse"])

    def test_bash_completes_kernels_and_libraries(self):
        self.assertIn("fa1", self.in_bash("attn-diag trace --kernel fa"))
        self.assertEqual(self.in_bash("attn-diag trace --kernel min"), ["mine.so"])

    def test_every_flag_of_help_is_completed_in_each_shell(self):
        main = call(self.folder, "--help").stdout
        commands = re.findall(r"(?m)^  ([a-z]+) {2,}\S", main.split("Subcommands:")[1])
        self.assertGreater(len(commands), 15)
        fish, zsh = (self.folder / "fish").read_text(), (self.folder / "zsh").read_text()
        for command in commands:
            flags = re.findall(r"(?m)^  (?:-\w,)?(--[a-z-]+)", call(self.folder, f"{command} --help").stdout)
            completed = self.in_bash(f"attn-diag {command} --")
            self.assertLessEqual(set(flags), set(completed), command)
            for flag in flags:
                self.assertRegex(fish, rf"from {command}'.* -l {flag[2:]}( |$)")
            part = zsh.split(f"\n  {command})\n")[1].split(";;")[0]
            self.assertLessEqual(set(flags), set(re.findall(r"--[a-z-]+", part)), command)

    def test_zsh(self):
        if shutil.which("zsh") is None:
            self.skipTest("SKIP: zsh is not installed")
        done = subprocess.run(["zsh", "-fn", "./zsh"], cwd=self.folder, stderr=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        # A terminal is what completion needs: zsh's own zpty is one.
        shutil.copy(self.folder / "zsh", self.folder / "_attn-diag")
        script = """
          zmodload zsh/zpty
          zpty z zsh -f -i
          zpty -w z "PS1='' ; fpath=($PWD \\$fpath); autoload -Uz compinit; compinit -D -u; path=($PWD \\$path); LISTMAX=0"
          zpty -w z "bindkey '^I' complete-word"
          sleep 2
          for line in 'attn-diag trace --sof' 'attn-diag trace --mask causal:t' 'attn-diag expl'; do
            zpty -w -n z "$line"$'\\t'
            sleep 1
            zpty -w z ' #done'
          done
          sleep 1
          while zpty -r -t z part; do print -rn -- $part; done
        """
        done = subprocess.run(["zsh", "-fc", script], cwd=self.folder, stdout=subprocess.PIPE, text=True, timeout=60,
                              env={**os.environ, "TERM": "dumb"})
        shown = done.stdout.replace("\r", "")
        # The lines are run, too, and attn-diag answers: what is looked at is the line itself.
        for whole in "trace --softmax-scale=", "trace --mask causal:top_left", "attn-diag explain ":
            self.assertIn(whole, shown)

    def test_fish(self):
        if shutil.which("fish") is None:
            self.skipTest("SKIP: fish is not installed")

        def complete(line):
            done = subprocess.run(["fish", "--no-config", "-c", f"source ./fish; complete -C {shlex.quote(line)}"],
                                  cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  env={**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}"})
            self.assertEqual(done.stderr, "")
            return [found.split("\t")[0] for found in done.stdout.splitlines()]

        self.assertEqual(complete("attn-diag tr"), ["trace"])
        self.assertEqual(complete("attn-diag trace --sof"), ["--softmax-scale"])
        self.assertEqual(complete("attn-diag trace --dtype b"), ["bf16"])
        self.assertIn("fa1", complete("attn-diag trace --kernel fa"))
        self.assertEqual(complete("attn-diag explain missing-f"), ["missing-fence"])

    def test_the_manual_renders_without_warnings_and_has_every_command(self):
        if shutil.which("groff") is None:
            self.skipTest("SKIP: groff is not installed")
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-rLL=100n", "./man"], cwd=self.folder, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "GROFF_NO_SGR": "1"})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        page = re.sub(".\b", "", done.stdout)
        for text in "attn-diag trace --kernel KERNEL [FLAGS]", "--softmax-scale", "jq '.kernels[].name'", "attn-diag.toml":
            self.assertIn(text, page)

    def test_a_form_that_is_none(self):
        self.assertIn("Did you mean zsh?", self.run_it("completions zs", 2).stderr)
        self.assertIn("given nothing", self.run_it("completions", 2).stderr)


class Explain(InFolder):
    def test_words_of_each_registry(self):
        for word, text in (("reduce", "merged_o"), ("merged_o", "Of stage reduce"), ("2", "Could not compare"),
                           ("latent", "CUDA does not promise"), ("alpha-missing-o", "docs/catalogue.md"),
                           ("lockstep", "warp"), ("probe", "input kind"), ("causal:top_left", "mask"),
                           ("missing-fence", "__threadfence"), ("permuted-keys", "property")):
            self.assertIn(text, self.run_it(f"explain {word}", 0).stdout, word)

    def test_a_word_of_two_kinds_is_explained_twice(self):
        self.assertEqual(self.run_it("explain causal", 0).stdout.count("See "), 1)
        self.assertEqual(len(json.loads(self.run_it("explain --json", 0).stdout)["words"]),
                         len(set((w["kind"], w["word"])
                                 for w in json.loads(self.run_it("explain --json", 0).stdout)["words"])))

    def test_unknown_words_are_suggested(self):
        result = self.run_it("explain missing-fense", 2)
        self.assertIn("Did you mean missing-fence", result.stderr)
        self.assertEqual(result.stdout, "")

    def test_the_list_is_of_all_words(self):
        listed = [word.rstrip(",") for word in self.run_it("explain", 0).stdout.split()]
        for word in json.loads(self.run_it("explain --json", 0).stdout)["words"]:
            self.assertIn(word["word"], listed)


class Config(InFolder):
    def setUp(self):
        self.project = pathlib.Path(tempfile.mkdtemp(prefix="project-", dir=self.folder))
        self.below = self.project / "a" / "b"
        self.below.mkdir(parents=True)

    def write(self, text):
        (self.project / "attn-diag.toml").write_text(text)

    def report(self, line, code=0):
        return json.loads(self.run_it(line + " --json", code, folder=self.below).stdout)

    def refused(self, text, line="run --kernel fa1"):
        self.write(text)
        return self.run_it(line, 2, folder=self.below).stderr

    def test_defaults_are_found_above_and_flags_win(self):
        self.write('[defaults]\ndtype = "bf16"\nseqlen = 40\nhead-dim = 16\n[run]\nmask = "causal"\nseqlen = 20\n')
        problem = self.report("run --kernel fa1")["problem"]
        self.assertEqual((problem["dtype"], problem["seqlen_q"], problem["mask"], problem["head_dim"]),
                         ("bf16", 20, "causal", 16))
        self.assertEqual(self.report("run --kernel fa1 --seqlen 8 --dtype fp32")["problem"]["dtype"], "fp32")
        self.assertEqual(self.report("run --kernel fa1 --no-config")["problem"]["dtype"], "fp16")

    def test_what_they_were_is_said(self):
        self.write('[defaults]\nkernel = "fa1"\nseqlen = 20\n')
        text = self.run_it("run", 0, folder=self.below).stdout
        self.assertIn(f"Defaults of {self.project}/attn-diag.toml: --kernel fa1 --seqlen 20", text)
        report = self.report("run")
        self.assertEqual(report["defaults"]["flags"], "--kernel fa1 --seqlen 20")
        quiet = self.run_it("run --quiet", 0, folder=self.below)
        self.assertNotIn("Defaults", quiet.stdout)
        self.assertIn("Defaults of", quiet.stderr)

    def test_the_line_that_reproduces_means_the_same_everywhere(self):
        self.write('[defaults]\nseqlen = 20\nschedule = "reverse"\nmma-order = 3\n')
        reports = [self.report("run --kernel fa1"), self.report("run --kernel fa1 --schedule forward --mma-order 0")]
        for report, schedule in zip(reports, ("reverse", "forward")):
            words = shlex.split(report["reproduce"])
            self.assertIn("--no-config", words)
            for folder in self.below, self.folder:
                again = json.loads(call(folder, shlex.join(words[1:] + ["--json"])).stdout)
                self.assertEqual(again["problem"], report["problem"])
                self.assertEqual(again["provenance"]["schedule"], schedule)

    def test_a_flag_turns_off_the_defaults_of_those_that_depend_on_it(self):
        self.write('[defaults]\nheads = 4\nkv-heads = 2\nseqlen-k = 30\nno-lines = true\n')
        problem = self.report("run --kernel fa1 --heads 3 --seqlen 10")["problem"]
        self.assertEqual((problem["heads"], problem["kv_heads"], problem["seqlen_k"]), (3, 3, 10))
        self.run_it("trace --kernel fa1 --seqlen 10 --lines", 0, folder=self.below)

    def test_inputs_of_a_file_come_with_their_sizes(self):
        self.write('[defaults]\nseqlen = 20\ndtype = "bf16"\n')
        self.run_it("dump --kernel fa1 -o x.h5", 0, folder=self.below)
        self.assertEqual(self.report("run --kernel fa1 --inputs x.h5")["problem"]["seqlen_q"], 20)

    def test_paths_are_meant_from_the_file(self):
        self.write('[trace]\nsarif = "out/t.sarif"\nkernel = "fa1"\nseqlen = 8\n')
        (self.project / "out").mkdir()
        self.run_it("trace", 0, folder=self.below)
        self.assertTrue((self.project / "out" / "t.sarif").exists())
        self.write('[run]\nkernel = ["./mine.so:x", "fa1", "/not/here.so:y"]\n')
        text = self.run_it("run --seqlen 8", 2, folder=self.below).stderr
        self.assertIn("--kernel ../../mine.so:x,fa1,/not/here.so:y", text)

    def test_lists_switches_and_numbers(self):
        self.write('[run]\nseqlen = [8, 9]\ndtype = ["fp16", "bf16"]\ninput-scale = 0.5\nno-sanity = true\n')
        self.assertEqual(len(self.report("run --kernel fa1")["cases"]), 4)
        self.write('[defaults]\njson = true\n[run]\njson = false\n')
        self.assertIn("AGREES", self.run_it("run --kernel fa1 --seqlen 8", 0, folder=self.below).stdout)

    def test_what_is_wrong_with_a_file_is_said_with_its_line(self):
        self.assertIn("attn-diag.toml:2: run has no flag 'seqln'. Did you mean seqlen", self.refused("[run]\nseqln = 3\n"))
        self.assertIn(":3: no command has a flag 'dtyp'. Did you mean dtype", self.refused("[defaults]\n\ndtyp = 1\n"))
        self.assertIn(":1: there is no command 'trac' for a section. Did you mean trace?", self.refused("[trac]\n"))
        self.assertIn(":1: 'seqlen' stands outside of a section", self.refused("seqlen = 3\n"))
        self.assertIn(":2: 'json' is a switch: it takes true or false.", self.refused('[run]\njson = "yes"\n'))
        self.assertIn(":2: 'dtype' takes text, a number, or a list", self.refused("[run]\ndtype = true\n"))
        self.assertIn(":2: 'dtype' takes text, a number, or a list", self.refused("[run]\ndtype = {a = 1}\n"))
        self.assertIn(":2: 'seqlen' is given an empty list", self.refused("[run]\nseqlen = []\n"))
        self.assertIn(":1: not TOML", self.refused("[run\n"))

    def test_a_bad_value_names_the_file_too(self):
        text = self.refused('[run]\ndtype = "fp61"\n')
        self.assertIn("--dtype takes fp16, bf16, fp32, but was given 'fp61'", text)
        self.assertIn("attn-diag.toml", text)

    def test_a_broken_file_stops_neither_help_nor_completions_nor_no_config(self):
        self.write("[run\n")
        for line in "run --help", "completions bash", "run --kernel fa1 --seqlen 8 --no-config":
            self.run_it(line, 0, folder=self.below)


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
