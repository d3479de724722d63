"""mutation.json and mutation.md of the rows."""

import collections
import json
import pathlib

from mutation_evidence import score

SCHEMA = "attn-diag-mutation/2"
ROWS = "mutants.jsonl"


def read_rows(folder):
    """The rows; of a mutant that was asked about again only the last one."""
    path = pathlib.Path(folder) / ROWS
    rows, places = [], {}
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue  # of a call that was stopped while it wrote
        key = row["row"], row.get("kernel"), row.get("id"), row.get("case") if row["row"] == "control" else None
        if row["row"] != "call" and key in places:
            rows[places[key]] = row
        else:
            places[key] = len(rows)
            rows.append(row)
    return rows


def summary_of(rows):
    settings = next((row for row in rows if row["row"] == "settings"), None)
    if settings is None:
        raise SystemExit(f"mutation-evidence: there is no {ROWS} to score")
    mutants = sorted((row for row in rows if row["row"] == "mutant"), key=lambda row: row["id"])
    killed = [m for m in mutants if m["outcome"] == "killed"]
    calls = [row["command"] for row in rows if row["row"] == "call"]
    diagnosed = collections.Counter(m["diagnose"]["verdict"] or "no verdict" for m in killed if m.get("diagnose"))
    return {
        "schema": SCHEMA, "seed": settings["seed"], "commit": settings["commit"], "attn_diag": settings["attn_diag"],
        "commands": list(dict.fromkeys(calls)),
        "kernels": len({m["kernel"] for m in killed}),
        "overall": score.tally(mutants),
        "trace_seconds": score.seconds(killed),
        "edit_seconds": score.seconds(killed, "edit_seconds"),
        "diagnose": dict(sorted(diagnosed.items())),
        "controls": score.controls([row for row in rows if row["row"] == "control"]),
        "by_how_killed": score.grouped(killed, "how"),
        "by_operator": score.grouped(mutants, "operator"),
        "by_kernel": score.grouped(mutants, "kernel"),
    }, mutants


def share(count, of):
    return f"{100 * count / of:.1f} %" if of else "-"


OVERALL = [
    ("detected: `trace` or `check` ends with other than 0", "detected"),
    ("the exact line is the first answer", "exact_first"),
    ("... and claimed, not unsure", "claimed_exact"),
    ("the exact line is among the first three", "exact_in_three"),
    ("the first place that is told is exact, or of a deletion beside it", "place_first"),
    ("... or among the first three", "place_in_three"),
    ("the first answer is the same statement or variable", "same_statement_or_variable"),
    ("... or a line beside", "within_one_line"),
    ("a line is claimed", "claimed"),
    ("**wrong**: another line is claimed", "wrong"),
    ("unsure", "unsure"),
    ("no line", "no_line"),
    ("not looked", "not_looked"),
    ("a finding of `check` has the exact line", "check_has_line"),
    ("the error in place of a verdict has the exact line", "error_has_line"),
]
EDITED = [  # of those that were traced with --try-edits, too
    ("with `--try-edits`: an edit is found", "repaired"),
    ("... the exact line is the first answer", "exact_first_with_edits"),
    ("... (of the same ones without)", "exact_first_alone"),
    ("... the exact line is among the first three", "exact_in_three_with_edits"),
    ("... (of the same ones without)", "exact_in_three_alone"),
    ("... the first place that is told is exact, or of a deletion beside it", "place_first_with_edits"),
    ("... or among the first three", "place_in_three_with_edits"),
    ("... **wrong**: another line is claimed", "wrong_with_edits"),
]
TARGETS = [  # what, how it is read off the summary, what is wanted
    ("killed mutants", lambda s: s["overall"]["killed"], ">= 300"),
    ("kernels they are of", lambda s: s["kernels"], ">= 25"),
    ("detected", lambda s: percent(s["overall"], "detected"), ">= 100 %"),
    ("the exact line is the first answer", lambda s: percent(s["overall"], "exact_first"), ">= 70 %"),
    ("the exact line is among the first three", lambda s: percent(s["overall"], "exact_in_three"), ">= 90 %"),
    ("with `--try-edits` it is the first answer", lambda s: percent(s["overall"], "exact_first_with_edits", "edits_asked"),
     ">= 70 %"),
    ("... or among the first three", lambda s: percent(s["overall"], "exact_in_three_with_edits", "edits_asked"), ">= 90 %"),
    ("... or among the first three, of a deletion a line beside it",
     lambda s: percent(s["overall"], "place_in_three_with_edits", "edits_asked"), ">= 90 %"),
    ("wrong without saying that it is unsure", lambda s: percent(s["overall"], "wrong"), "<= 2 %"),
    ("repaired", lambda s: percent(s["overall"], "repaired", "edits_asked"), ">= 60 %"),
    ("right kernels: random cases", lambda s: s["controls"]["random"], ">= 500"),
    ("right kernels: lines that are claimed", lambda s: s["controls"]["false_lines"] if s["controls"]["cases"] else None,
     "<= 0"),
]


def percent(counts, key, of="asked"):
    return 100 * counts[key] / counts[of] if counts.get(of) else None


def target_rows(summary):
    lines = ["| target | reached | wanted | |", "|---|---|---|---|"]
    for title, read, wanted in TARGETS:
        value, (sign, limit, *unit) = read(summary), wanted.split()
        if value is None:
            reached, verdict = "-", "not measured"
        else:
            met = value >= float(limit) if sign == ">=" else value <= float(limit)
            reached, verdict = f"{value:.1f} %" if unit else str(value), "met" if met else "**missed**"
        lines.append(f"| {title} | {reached} | {wanted} | {verdict} |")
    return lines


COLUMNS = [("drawn", "drawn"), ("not compiled", "does_not_compile"), ("agrees", "agrees"), ("killed", "killed"),
           ("detected", "detected"), ("exact first", "exact_first"), ("in three", "exact_in_three"),
           ("statement or variable", "same_statement_or_variable"), ("within a line", "within_one_line"),
           ("wrong", "wrong"), ("unsure", "unsure"), ("no line", "no_line"), ("not looked", "not_looked")]


def table(groups, what, columns):
    lines = ["| " + " | ".join([what, *(title for title, _ in columns)]) + " |", "|---" * (len(columns) + 1) + "|"]
    for name, counts in groups.items():
        lines.append("| " + " | ".join([f"`{name}`", *(str(counts[key]) for _, key in columns)]) + " |")
    return lines


def markdown(summary, mutants):
    overall, killed = summary["overall"], [m for m in mutants if m["outcome"] == "killed"]
    asked = overall["asked"]
    lines = ["# Evidence that a trace names the line", "",
             "Written by `tools/mutation-evidence`; do not edit. How it is made: "
             "[README.md](README.md#how-often-a-trace-names-the-line).",
             "", f"Seed `{summary['seed']}`, commit `{summary['commit']}`, {summary['attn_diag']}. To make it again:", "",
             *[f"    {command}" for command in summary["commands"]], "",
             f"{overall['drawn']} mutants were drawn: {overall['does_not_compile']} do not compile, {overall['agrees']} agree "
             f"on every case and under `check`, {overall['killed']} of {summary['kernels']} kernels are killed.", "",
             "## Targets", "", *target_rows(summary), "",
             "## Overall", "", f"Of the {asked} killed mutants that were traced:", "", "| | | |", "|---|---|---|"]
    for title, key in OVERALL:
        lines.append(f"| {title} | {overall[key]} | {share(overall[key], asked)} |")
    for title, key in EDITED if "edits_asked" in overall else ():
        of = overall["edits_asked"]
        lines.append(f"| {title} | {overall[key]} of {of} | {share(overall[key], of)} |")
    for title, key in ("seconds of `trace`", "trace_seconds"), ("seconds of trying edits", "edit_seconds"):
        took = summary[key]
        if took:
            figures = ", ".join(f"{took[key]:.2f}" for key in ("median", "nine_in_ten", "most"))
            lines.append(f"| {title}: median, nine in ten, most | {figures} | |")
    if summary["diagnose"]:
        of = sum(summary["diagnose"].values())
        lines += ["", "What `diagnose` alone says of them, right or not:", "", "| | | |", "|---|---|---|"]
        lines += [f"| {name} | {count} | {share(count, of)} |" for name, count in summary["diagnose"].items()]
    of = summary["controls"]
    lines += ["", "## Right kernels", "",
              f"{of['cases']} cases were traced, {of['random']} of them random: {of['false_lines']} lines were claimed, "
              f"{of['answers'].get('unsure', 0)} times there were suspects, {of['does_not_agree']} did not agree."]
    lines += ["", "## By what killed them", "", *table(summary["by_how_killed"], "how", COLUMNS[3:]),
              "", "## By operator", "", *table(summary["by_operator"], "operator", COLUMNS),
              "", "## By kernel", "", *table(summary["by_kernel"], "kernel", COLUMNS)]
    lines += missed(killed)
    return "\n".join(lines) + "\n"


def missed(killed):
    """Those of which the first answer is another line, or none; the wrong ones first."""
    looked = [(m, score.score(m)) for m in killed if "trace" in m and m["trace"]["answer"] != "not_looked"]
    sections = [("Wrong", [m for m, s in looked if s["wrong"]]),
                ("Not detected", [m for m, s in looked if not s["detected"]]),
                ("Unsure, and another line first",
                 [m for m, s in looked if s["answer"] == "unsure" and s["first"] in ("other", None)]),
                ("No line", [m for m, s in looked if s["answer"] == "none" and s["detected"]])]
    lines = []
    for title, mutants in sections:
        if not mutants:
            continue
        lines += ["", f"## {title}", ""]
        for m in mutants:
            said = "; ".join(f"{s['file']}:{s['line']} {s['variable'] or ''}".strip() for s in m["trace"]["suspects"][:3])
            said = f"Said: {said}" if said else m["trace"]["reason"] or m["trace"].get("error") or "Nothing is said."
            lines += [f"`{m['id']}`, {m['operator']}, `{m['case']}`: {m['how']}. {said}", "",
                      "```diff", m["diff"].rstrip("\n"), "```", ""]
    return lines


def write(folder):
    folder = pathlib.Path(folder)
    summary, mutants = summary_of(read_rows(folder))
    rows = [{**m, "scores": score.score(m)} if "trace" in m else m for m in mutants]
    # A row a line: it is read by programs, and by people in diffs.
    lines = ",\n  ".join(json.dumps(row) for row in rows)
    head = json.dumps(summary, indent=1).removesuffix("\n}")
    (folder / "mutation.json").write_text(f'{head},\n "rows": [\n  {lines}\n ]\n}}\n')
    (folder / "mutation.md").write_text(markdown(summary, mutants))
