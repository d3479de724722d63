"""Asks attn-diag about a kernel library: does it build, does it agree, what do trace and diagnose say?"""

import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import time

BUILD_SECONDS = 300


def run_within(seconds, command, cwd):
    """(exit code, stdout, stderr, seconds), the code None: it took longer, and was ended with all it had started."""
    begun = time.monotonic()
    program = subprocess.Popen(command, text=True, errors="replace", stdin=subprocess.DEVNULL, cwd=cwd,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    try:
        out, err = program.communicate(timeout=seconds)
        code = program.returncode
    except subprocess.TimeoutExpired:
        os.killpg(program.pid, signal.SIGKILL)
        out, err = program.communicate()
        code = None
    return code, out, err, time.monotonic() - begun


def read(text):
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return {}


class AttnDiag:
    def __init__(self, path, seconds=20.0, trace_seconds=180.0):
        self.path = str(path)
        self.seconds = seconds
        self.trace_seconds = trace_seconds

    def version(self):
        return run_within(60, [self.path, "--version"], None)[1].strip().splitlines()[:1]

    def build(self, folder, sources, flags):
        """Whether x.so was built in the folder, and what was said."""
        code, out, err, _ = run_within(
            BUILD_SECONDS, [self.path, "build", *sources, "-o", "x.so", *flags, "--no-nvcc", "--quiet"], folder)
        return code == 0, (out + err)

    def run(self, folder, case):
        """agrees, diverges, latent, writes outside, crashes, does not end, does not run, unsupported, internal error."""
        code, out, err, _ = run_within(self.seconds + 10, [
            self.path, "run", "--kernel", "./x.so", "--backend", "host", *shlex.split(case), "--no-history", "--json",
            "--timeout", str(self.seconds)], folder)
        return verdict(code, read(out), err)

    def check(self, folder, case):
        """{verdict: silent, finds, fails; lines: [[file, line]] of what it finds, in order}."""
        code, out, _, seconds = run_within(self.trace_seconds, [
            self.path, "check", "--kernel", "./x.so", *shlex.split(case), "--json"], folder)
        said = read(out)
        places = [place for finding in said.get("findings") or [] for access in (finding["access"], finding["other"])
                  if access for place in access["places"]]
        lines = [[pathlib.Path(place["file"]).name, place["line"]] for place in places]
        kinds = [finding["kind"] for finding in said.get("findings") or []]
        return {"verdict": {0: "silent", 1: "finds"}.get(code, "fails"), "exit": code, "seconds": round(seconds, 3),
                "kinds": sorted(set(kinds)), "lines": [json.loads(x) for x in dict.fromkeys(map(json.dumps, lines))]}

    def trace(self, folder, case, *flags, more=0):
        """{exit, verdict, seconds, answer, reason, suspects}. It may take `more` seconds."""
        code, out, err, seconds = run_within(self.trace_seconds + more, [
            self.path, "trace", "--kernel", "./x.so", "--backend", "host", *shlex.split(case), "--no-history", "--json",
            "--timeout", str(self.seconds), *flags], folder)
        said = read(out)
        return {"exit": code, "verdict": verdict(code, said, err), "seconds": round(seconds, 3),
                **line_divergence(said, folder), **error_of(err, folder)}

    def diagnose(self, folder, case):
        """{exit, verdict, names}."""
        code, out, _, seconds = run_within(self.trace_seconds, [
            self.path, "diagnose", "--kernel", "./x.so", "--backend", "host", *shlex.split(case), "--no-history",
            "--json"], folder)
        said = read(out)
        return {"exit": code, "verdict": said.get("diagnosis_verdict"), "seconds": round(seconds, 3),
                "names": [named.get("name") for named in said.get("diagnosis") or [] if isinstance(named, dict)]}

    def edits(self, folder, case, seconds):
        """What trace() gives with --try-edits, whether an edit was found, and how many were tried."""
        traced = self.trace(folder, case, "--try-edits", f"{seconds:g}", more=seconds)
        return {key: value for key, value in traced.items() if key != "error"}


def verdict(code, said, err):
    if code is None:
        return "does not end"
    if code == 0:
        return "agrees"
    if code == 1:
        latent = said.get("verdict") == "latent" or (said.get("sanity") or {}).get("latent")
        return "latent" if latent else "diverges"
    if code == 2:
        kind = (said.get("error") or {}).get("kind")
        if kind == "timeout" or "has not ended" in err:
            return "does not end"
        if kind == "signal":
            return "crashes"
        if " wrote outside " in err:
            return "writes outside"
        return "unsupported" if "does not support" in err else "does not run"
    return "internal error"


def error_of(err, folder):
    """{error, error_lines} of what was said instead of a verdict: places of the kernel's sources, without addresses."""
    found = re.search(r"^attn-diag: error: (.*(?:\n  .*)*)", err, re.M)
    if not found:
        return {}
    text = found.group(1).replace(f"{folder}/", "")
    places = [[relative(name, folder), int(line)] for name, line in
              re.findall(r"([\w./+-]+\.(?:cu|cuh|h|hpp)):(\d+)", text)]
    kept = [place for place in places if (pathlib.Path(folder) / place[0]).exists()]
    return {"error": re.sub(r"0x[0-9a-f]+", "0x...", text.splitlines()[0]),
            "error_lines": [json.loads(place) for place in dict.fromkeys(map(json.dumps, kept))]}


def line_divergence(said, folder):
    """What a report's line_divergence says, without paths of this machine."""
    part = said.get("line_divergence") or {"answer": "not_looked"}
    suspects = [{"file": relative(s.get("file") or "", folder), "line": s.get("line"), "column": s.get("column"),
                 "variable": s.get("variable"), "text": s.get("text")} for s in part.get("suspects") or []]
    reason = (part.get("reason") or "").replace(f"{folder}/", "")
    found = {"answer": part.get("answer", "not_looked"), "reason": reason, "suspects": suspects}
    if part.get("edits"):
        edits = part["edits"]
        found["edits"] = {"found": bool(edits["diff"]), "operator": edits["operator"], "tried": edits["tried"],
                          "seconds": round(edits["seconds"], 3)}
    return found


def relative(path, folder):
    """Of a source, its name in the kernel's folder; of any other its name alone."""
    try:
        return str(pathlib.Path(path).resolve().relative_to(pathlib.Path(folder).resolve()))
    except ValueError:
        return path if path and not pathlib.Path(path).is_absolute() else pathlib.Path(path).name
