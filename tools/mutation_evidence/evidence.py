"""Draws, kills and asks: a row of mutants.jsonl for each mutant, in a file that a second call goes on with."""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import random
import shlex
import shutil
import sys
import threading
import time

from mutation_evidence import ask, draw, kernels, report, score
from mutation_evidence.report import ROWS

DRAWS_PER_WANTED = 12  # of a kernel, before it is given up on


class Rows:
    """The JSON lines: settings, then kernels, mutants and controls as they are done."""

    def __init__(self, folder, settings):
        self.path = folder / ROWS
        self.lock = threading.Lock()
        self.rows = report.read_rows(folder)
        if self.path.exists() and not self.path.read_text().endswith("\n"):
            with self.path.open("a") as file:
                file.write("\n")  # a call was stopped while it wrote
        first = self.rows[0] if self.rows else None
        if first is None:
            self.add(settings)
        elif (first["row"], first["seed"]) != ("settings", settings["seed"]):
            raise SystemExit(f"mutation-evidence: {ROWS} of this folder is of the seed {first.get('seed')!r}; "
                             f"go on with --seed {first.get('seed')}, or give another --out")

    def add(self, row):
        with self.lock:
            self.rows.append(row)
            with self.path.open("a") as file:
                file.write(json.dumps(row) + "\n")

    def of(self, kind, kernel):
        with self.lock:
            return [row for row in self.rows if row["row"] == kind and row["kernel"] == kernel]


class Progress:
    def __init__(self, wanted, done):
        self.wanted, self.done, self.begun, self.lock = wanted, done, time.monotonic(), threading.Lock()
        self.at_first = done

    def say(self, text, finished=0):
        with self.lock:
            self.done += finished
            spent, made = time.monotonic() - self.begun, self.done - self.at_first
            left = f", about {spent / made * (self.wanted - self.done) / 60:.0f} min left" if made else ""
            print(f"[{self.done}/{self.wanted}{left}] {text}", file=sys.stderr, flush=True)


def quotas(options, chosen):
    if options.count is None:
        each = 8 if options.per_kernel is None else options.per_kernel
        return {kernel.name: each for kernel in chosen}
    return {kernel.name: (options.count + len(chosen) - 1 - i) // len(chosen) for i, kernel in enumerate(chosen)}


def command_of(options):
    """The call as it may be repeated anywhere: no folders of this machine but the names of brought kernels."""
    words = ["tools/mutation-evidence", "--seed", options.seed]
    words += ["--count", options.count] if options.count is not None else ["--per-kernel", options.per_kernel or 8]
    words += [word for folder in options.kernel_dir for word in ("--kernel-dir", folder.name)]
    words += ["--only", options.only] if options.only else []
    words += ["--controls", options.controls] if options.controls else []
    words += [f"--control-flags={options.control_flags}"] if options.control_flags else []
    words += ["--no-diagnose"] * options.no_diagnose
    words += ["--try-edits", f"{options.try_edits:g}"] if options.try_edits else []
    return shlex.join(map(str, words))


def hash_of(sources):
    text = "".join(f"{name}\0{sources[name].text}\0" for name in sorted(sources))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def unasked(made, options):
    """What of a killed mutant was not asked yet, or is to be asked anew."""
    if made["outcome"] != "killed" or options.no_ask:
        return []
    questions = ["check", "trace"]
    if not options.no_diagnose:
        questions.append("diagnose")
    if options.try_edits:
        questions.append("edits")
    return [question for question in questions if question not in made or question in options.again]


class Worker:
    """What is done with one kernel."""

    def __init__(self, options, kernel, attn_diag, rows, progress, work):
        self.options, self.kernel, self.attn_diag, self.rows, self.progress = options, kernel, attn_diag, rows, progress
        self.folder = work / kernel.name
        self.work = work
        self.sources = kernels.parsed(kernel)

    def build(self, folder, mutant=None):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.kernel.folder, folder, ignore=shutil.ignore_patterns("broken.patch", "*.so"))
        if mutant:
            (folder / mutant.file).write_text(mutant.text)
            (folder / "mutant").write_text(mutant.id + "\n")
        return self.attn_diag.build(folder, self.kernel.sources, self.kernel.build_flags)

    def right_kernel(self):
        """The kernel's row: it builds, and these are the cases on which it agrees."""
        right = self.folder / "right"
        found = self.rows.of("kernel", self.kernel.name)
        row = found[0] if found else None
        if row and row["sources"] != hash_of(self.sources):
            raise SystemExit(f"mutation-evidence: {self.kernel.name} is no longer what {ROWS} is of; give another --out")
        if row and (right / "x.so").exists():
            return row, right
        built, said = self.build(right)
        if not built:
            raise SystemExit(f"mutation-evidence: {self.kernel.name} does not build:\n{said}")
        if not row:
            own = kernels.own_cases(self.kernel)
            verdicts = {case: self.attn_diag.run(right, case) for case in (*own, *kernels.further_cases(self.kernel))}
            wrong = [case for case in own if verdicts[case] != "agrees"]
            row = {"row": "kernel", "kernel": self.kernel.name, "sources": hash_of(self.sources),
                   "cases": [case for case in verdicts if verdicts[case] == "agrees"], "disagrees": wrong}
            self.rows.add(row)
        return row, right

    def mutants(self, row, wanted):
        """Goes on drawing until so many are killed; asks of those there are what was not asked yet."""
        had = {made["id"]: made for made in self.rows.of("mutant", self.kernel.name)}
        killed = 0
        for number, mutant in enumerate(draw.draw(self.kernel.name, self.sources, self.options.seed)):
            if killed >= wanted or number >= DRAWS_PER_WANTED * wanted + 12:
                break
            made = had.get(mutant.id)
            if made is None:
                made = self.one(mutant, row)
            elif unasked(made, self.options):
                made = self.asked_again(mutant, made)
            else:
                killed += made["outcome"] == "killed"
                continue
            self.rows.add(made)
            killed += made["outcome"] == "killed"
            said = made["outcome"] + (f" ({made['how']})" if "how" in made else "")
            if "trace" in made:
                said += f", trace: {score.verdict(made)}"
            self.progress.say(f"{mutant.id} {mutant.operator}, {mutant.file}:{mutant.line}: {said}",
                              finished=made["outcome"] == "killed")
        if killed < wanted:
            self.progress.say(f"{self.kernel.name}: no more mutants; {killed} of {wanted} killed", wanted - killed)

    def folder_of(self, mutant):
        """One for all mutants of the kernel, unless they are kept: what ccache has is of sources there."""
        return self.work / mutant.id if self.options.keep else self.folder / "mutant"

    def asked_again(self, mutant, made):
        folder = self.folder_of(mutant)
        self.build(folder, mutant)
        made = {**made, **self.ask(folder, made, unasked(made, self.options))}
        self.finish(folder, made)
        return made

    def finish(self, folder, made):
        if made["outcome"] == "killed" and self.options.keep:
            (folder / "mutant.json").write_text(json.dumps(made, indent=1) + "\n")
        else:
            shutil.rmtree(folder, ignore_errors=True)

    def one(self, mutant, row):
        folder = self.folder_of(mutant)
        made = {"row": "mutant", **mutant.record()}
        built, said = self.build(folder, mutant)
        if not built:
            made["outcome"] = "does not compile"
            if "error:" not in said:
                made["said"] = said.strip()[-300:].replace(str(folder) + "/", "")
        else:
            made.update(self.kill(folder, row["cases"]))
            made.update(self.ask(folder, made, unasked(made, self.options)))
        self.finish(folder, made)
        return made

    def kill(self, folder, cases):
        for case in cases:
            verdict = self.attn_diag.run(folder, case)
            if verdict != "agrees":
                return {"outcome": "killed", "how": verdict, "case": case}
        check = self.attn_diag.check(folder, cases[0])
        if check["verdict"] == "finds":
            return {"outcome": "killed", "how": "check", "case": cases[0], "check": check}
        return {"outcome": "agrees"}

    def ask(self, folder, made, questions):
        answers = {}
        for question in questions:
            more = [self.options.try_edits] if question == "edits" else []
            answers[question] = getattr(self.attn_diag, question)(folder, made["case"], *more)
        return answers

    def controls(self, row, right, wanted):
        """Traces the right kernel on its own cases and on random ones."""
        had = {(made["case"]) for made in self.rows.of("control", self.kernel.name)}
        chance = random.Random(f"{self.options.seed}/controls/{self.kernel.name}")
        drawn = [kernels.random_case(self.kernel, chance) for _ in range(20 * wanted)]
        taken = 0
        for case, of_random in [*((c, False) for c in row["cases"]), *((c, True) for c in dict.fromkeys(drawn))]:
            if of_random and taken >= wanted:
                break
            if case in had:
                taken += of_random
                continue
            traced = self.attn_diag.trace(right, case, *shlex.split(self.options.control_flags))
            if traced["verdict"] in ("unsupported", "does not run") and of_random:
                continue
            taken += of_random
            self.rows.add({"row": "control", "kernel": self.kernel.name, "case": case, "random": of_random,
                           "trace": traced})
        self.progress.say(f"{self.kernel.name}: right one traced on {len(row['cases'])} cases and {taken} random ones")


def gather(options, chosen, commit):
    options.out.mkdir(parents=True, exist_ok=True)
    options.again = options.again.split(",") if options.again else []
    work = (options.work or options.out / "work").resolve()
    work.mkdir(parents=True, exist_ok=True)
    attn_diag = ask.AttnDiag(find_attn_diag(options.attn_diag), options.timeout, options.trace_timeout)
    if options.mutant:
        return show_one(options, chosen, attn_diag, work)
    rows = Rows(options.out, {"row": "settings", "seed": options.seed, "commit": commit,
                              "attn_diag": " ".join(attn_diag.version())})
    rows.add({"row": "call", "command": command_of(options)})
    wanted = quotas(options, chosen)
    done = sum(row["row"] == "mutant" and row["outcome"] == "killed" and row["kernel"] in wanted
               and not unasked(row, options) for row in rows.rows)
    progress = Progress(sum(wanted.values()), done)
    controls = {kernel.name: (options.controls + len(chosen) - 1 - i) // len(chosen)
                for i, kernel in enumerate(chosen)}

    def work_on(kernel):
        worker = Worker(options, kernel, attn_diag, rows, progress, work)
        row, right = worker.right_kernel()
        if row["disagrees"]:
            progress.say(f"{kernel.name} does not agree on {row['disagrees']}", wanted[kernel.name])
            return
        worker.mutants(row, wanted[kernel.name])
        if options.controls:
            worker.controls(row, right, controls[kernel.name])
        if not options.keep:
            shutil.rmtree(worker.folder, ignore_errors=True)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for finished in [pool.submit(work_on, kernel) for kernel in chosen]:
            finished.result()
    report.write(options.out)
    return 0


def show_one(options, chosen, attn_diag, work):
    """--mutant: made again, kept, and what is said of it printed."""
    kernel = next((k for k in chosen if options.mutant.rpartition("-")[0] == k.name), None)
    if kernel is None:
        raise SystemExit(f"mutation-evidence: {options.mutant} is of no kernel here")
    options.keep = True
    worker = Worker(options, kernel, attn_diag, None, None, work)
    known = [row["cases"] for row in report.read_rows(options.out)
             if row["row"] == "kernel" and row["kernel"] == kernel.name]
    for mutant in draw.draw(kernel.name, worker.sources, options.seed):
        if mutant.id == options.mutant:
            made = worker.one(mutant, {"cases": known[0] if known else kernels.own_cases(kernel)})
            print(json.dumps(made, indent=1))
            print(made["diff"] + (f"kept: {work / mutant.id}" if made["outcome"] == "killed" else ""), file=sys.stderr)
            return 0
    raise SystemExit(f"mutation-evidence: the seed {options.seed} draws no {options.mutant}")


def find_attn_diag(given):
    if given:
        if not given.exists():
            raise SystemExit(f"mutation-evidence: there is no {given}")
        return given.resolve()
    builds = [kernels.ROOT / "build" / "ci" / "bin" / "attn-diag", kernels.ROOT / "build" / "bin" / "attn-diag",
              *sorted(kernels.ROOT.glob("build*/**/bin/attn-diag"), key=os.path.getmtime, reverse=True)]
    found = next((path for path in builds if path.exists()), None) or shutil.which("attn-diag")
    if not found:
        raise SystemExit("mutation-evidence: attn-diag is not built here and not on PATH; give --attn-diag")
    return pathlib.Path(found).resolve()
