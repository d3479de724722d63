#!/usr/bin/env python3
"""How often attn_diag.trace_lines names the line of a bug: draws mutants of Triton kernels, and asks.

usage: line_evidence.py [--seed TEXT] [--each N] [--out FILE.json] [--only KERNEL]...

Each kernel of fixtures/triton is edited in its device code, N times or as often as there are edits, one edit at a time, drawn by the
seed. A mutant that raises, or whose o agrees, is not killed, and counts only as such. Of each killed one it is asked whether the
first suspect is the edited line (of a deleted statement also a line beside it), whether one of the first three is, and whether
a line was claimed that is another. With PYTHONPATH=<build>/python. Each mutant runs in a process of its own.
"""

import argparse
import ast
import importlib.util
import json
import multiprocessing
import os
import pathlib
import random
import sys
import tempfile
import time

os.environ["TRITON_INTERPRET"] = "1"
KERNELS = pathlib.Path(__file__).resolve().parents[3] / "fixtures" / "triton"
SECONDS = 120

BINARY = {ast.Add: ["-"], ast.Sub: ["+"], ast.Mult: ["+"], ast.Div: ["*"], ast.FloorDiv: ["%"], ast.Mod: ["//"],
          ast.BitAnd: ["|"]}
COMPARE = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}
CALLS = {"max": ["min", "sum"], "min": ["max"], "sum": ["max"], "maximum": ["minimum"], "minimum": ["maximum"],
         "exp": ["exp2"], "exp2": ["exp"], "log": ["log2"]}


class Edits(ast.NodeVisitor):
    """Of a device function: (operator, line, column, end line, end column, what stands there instead)."""

    def __init__(self, source, function):
        self.source, self.found = source, []
        self.names = sorted({n.id for n in ast.walk(function) if isinstance(n, ast.Name) and n.id not in ("tl", "float", "range")})
        self.assigned = set()
        for statement in function.body:
            self.visit(statement)

    def edit(self, operator, node, instead):
        self.found.append((operator, node.lineno, node.col_offset, node.end_lineno, node.end_col_offset, instead))

    def text(self, node):
        return ast.get_source_segment(self.source, node)

    def visit_BinOp(self, node):
        left, right = self.text(node.left), self.text(node.right)
        for sign in BINARY.get(type(node.op), []):
            self.edit("operator", node, f"({left}) {sign} ({right})")
        if isinstance(node.op, (ast.Mult, ast.Add, ast.Sub, ast.Div, ast.BitAnd)):
            self.edit("operand-dropped", node, f"({left})")
            if not isinstance(node.op, (ast.Div, ast.Sub)):
                self.edit("operand-dropped", node, f"({right})")
        self.generic_visit(node)

    def visit_Compare(self, node):
        if len(node.ops) == 1 and type(node.ops[0]) in COMPARE:
            self.edit("comparison", node, f"{self.text(node.left)} {COMPARE[type(node.ops[0])]} {self.text(node.comparators[0])}")
        self.generic_visit(node)

    def visit_Call(self, node):
        if isinstance(node.func, ast.Attribute):
            for instead in CALLS.get(node.func.attr, []):
                self.edit("function", node.func, self.text(node.func)[:-len(node.func.attr)] + instead)
        if isinstance(node.func, ast.Name) and node.func.id == "range" and len(node.args) > 1:
            self.edit("range", node.args[0], f"({self.text(node.args[0])}) + 1")
            self.edit("range", node.args[1], f"({self.text(node.args[1])}) - 1")
        self.generic_visit(node)

    def visit_Constant(self, node):
        if isinstance(node.value, bool) or not isinstance(node.value, (int, float)):
            return
        self.edit("constant", node, repr(node.value + 1) if isinstance(node.value, int) else repr(node.value * 2 + 1.0))

    def visit_Name(self, node):
        if not isinstance(node.ctx, ast.Load) or node.id in ("tl", "float", "range"):
            return
        # Another variable that looks alike.
        alike = [n for n in self.names if n != node.id and n[-2:] == node.id[-2:]] or \
                [n for n in self.names if n != node.id and n[:1] == node.id[:1]]
        for name in alike:
            self.edit("variable", node, name)

    def visit_Assign(self, node):
        target = node.targets[0]
        if isinstance(target, ast.Name):
            if target.id in self.assigned and node.lineno == node.end_lineno:
                self.edit("statement-deleted", node, "pass")
            self.assigned.add(target.id)
        self.visit(node.value)

    def visit_AugAssign(self, node):
        self.edit("statement-deleted", node, "pass")
        self.visit(node.value)

    def visit_arg(self, node):
        pass


def edits_of(source):
    found = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and any("triton.jit" in ast.unparse(d) for d in node.decorator_list):
            found += Edits(source, node).found
    return found


def edited(source, edit):
    _, line, column, end_line, end_column, instead = edit
    lines = source.splitlines(True)
    first, last = lines[line - 1].encode(), lines[end_line - 1].encode()
    text = first[:column].decode() + instead + last[end_column:].decode()
    # Lines keep their numbers.
    return "".join(lines[:line - 1]) + text + "\n" * (end_line - line) + "".join(lines[end_line:])


def draw(name, source, seed):
    """Edits in the order in which they are tried, by operator alike, none twice."""
    chance = random.Random(f"{seed}/{name}")
    left = {}
    for edit in edits_of(source):
        left.setdefault(edit[0], []).append(edit)
    seen = {source}
    while left:
        operator = chance.choice(sorted(left))
        edit = left[operator].pop(chance.randrange(len(left[operator])))
        if not left[operator]:
            del left[operator]
        text = edited(source, edit)
        if text not in seen:
            seen.add(text)
            yield edit, text


def asked(text, name, pipe):
    """In a process of its own."""
    import attn_diag
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / f"{name}.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        start = time.monotonic()
        try:
            spec.loader.exec_module(module)
            case = dict(module.CASE)
            q, k, v = attn_diag.inputs("randn", framework="torch", seed=1, **case.pop("sizes"))
            start = time.monotonic()
            result = attn_diag.trace_lines(module.attention, q, k, v, **case)
        except Exception as error:
            pipe.send({"outcome": "raises", "error": f"{type(error).__name__}: {error}"[:200]})
            return
        pipe.send({"outcome": "killed" if result.verdict == "diverges" else result.verdict, "answer": result.answer,
                   "reason": result.reason, "lines": [s["line"] for s in result.suspects], "line": result.line,
                   "what": result.to_dict()["line_divergence"]["what"], "seconds": round(time.monotonic() - start, 2)})


def ask(text, name):
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(False)
    process = context.Process(target=asked, args=(text, name, send))
    process.start()
    send.close()
    answer = {"outcome": "no answer in time"}
    if receive.poll(SECONDS):
        try:
            answer = receive.recv()
        except EOFError:
            answer = {"outcome": "crashes"}
    process.terminate()
    process.join()
    return answer


def beside(source, line):
    """Of a deleted statement: the lines of code before and behind it."""
    code = [i for i, text in enumerate(source.splitlines(), 1) if text.strip() and not text.strip().startswith("#")]
    return [max([i for i in code if i < line], default=line), min([i for i in code if i > line], default=line)]


def score(row):
    near = {row["line"], *(row["beside"] if row["operator"] == "statement-deleted" else [])}
    right = [line in near for line in row["answer"]["lines"]]
    return {"first": right[:1] == [True], "three": any(right[:3]), "claimed": row["answer"]["answer"] == "line",
            "wrong": row["answer"]["answer"] == "line" and right[:1] != [True]}


def overall(rows):
    killed = [r for r in rows if r["answer"]["outcome"] == "killed"]
    scores = [score(r) for r in killed]
    return {"drawn": len(rows), "killed": len(killed), "exact_first": sum(s["first"] for s in scores),
            "exact_in_three": sum(s["three"] for s in scores), "claimed": sum(s["claimed"] for s in scores),
            "wrong": sum(s["wrong"] for s in scores)}


def table(rows):
    print(f"{'kernel':<14} {'drawn':>5} {'killed':>6} {'first':>6} {'three':>6} {'claims':>6} {'wrong':>6}")
    for name in [*sorted({r["kernel"] for r in rows}), "all"]:
        some = [r for r in rows if name in (r["kernel"], "all")]
        scores = [score(r) for r in some if r["answer"]["outcome"] == "killed"]
        print(f"{name:<14} {len(some):>5} {len(scores):>6}" + "".join(
            f" {sum(s[key] for s in scores):>6}" for key in ("first", "three", "claimed", "wrong")))
    killed = [r for r in rows if r["answer"]["outcome"] == "killed"]
    if killed:
        first, three = (sum(score(r)[key] for r in killed) for key in ("first", "three"))
        took = sorted(r["answer"]["seconds"] for r in killed)
        print(f"first {100 * first / len(killed):.0f} %, among three {100 * three / len(killed):.0f} %; "
              f"median {took[len(took) // 2]:.1f} s, at most {took[-1]:.1f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--each", type=int, default=12, help="mutants of a kernel (12)")
    parser.add_argument("--out", type=pathlib.Path, help="all of it as JSON (docs/results/triton_lines.json)")
    parser.add_argument("--only", action="append", help="kernel; repeatable")
    arguments = parser.parse_args()
    import attn_diag  # before processes are forked
    import torch
    import triton  # noqa: F401
    torch.set_num_threads(1)
    rows, controls = [], []
    for path in sorted(KERNELS.glob("*.py")):
        if arguments.only and path.stem not in arguments.only:
            continue
        source = path.read_text()
        control = ask(source, path.stem)
        controls.append((path.stem, control))
        print(f"{path.stem}: right: {control['outcome']}, {control.get('answer')}", flush=True)
        for number, (edit, text) in enumerate(draw(path.stem, source, arguments.seed)):
            if number == arguments.each:
                break
            answer = ask(text, path.stem)
            before, after = source.splitlines()[edit[1] - 1].strip(), text.splitlines()[edit[1] - 1].strip()
            row = {"kernel": path.stem, "operator": edit[0], "line": edit[1], "beside": beside(source, edit[1]),
                   "before": before, "after": after, "answer": answer}
            rows.append(row)
            said = ""
            if answer["outcome"] == "killed":
                s = score(row)
                said = f"{'FIRST' if s['first'] else 'three' if s['three'] else 'other'} {answer['answer']} {answer['lines'][:4]} {answer['what'][:110]}"
            print(f"  {edit[0]:<17} {edit[1]:>3} {after[:90]}\n      {answer['outcome']} {said or answer.get('error', '')}", flush=True)
    if arguments.out:
        mutants = ",\n  ".join(json.dumps({**row, **(score(row) if row["answer"]["outcome"] == "killed" else {})}) for row in rows)
        head = {"schema": "attn-diag-triton-lines/1", "seed": arguments.seed, "each": arguments.each, "overall": overall(rows),
                "right_kernels": {name: control["outcome"] for name, control in controls}}
        arguments.out.write_text(json.dumps(head, indent=1)[:-2] + f',\n "mutants": [\n  {mutants}\n ]\n}}\n')
    table(rows)
    bad = [name for name, c in controls if c["outcome"] != "agrees" or c["answer"] != "none"]
    print(f"right kernels: {len(controls) - len(bad)} of {len(controls)} agree, without a suspect" + (f"; not: {bad}" if bad else ""))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
