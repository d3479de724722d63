"""What an answer about a mutant is worth: a row of mutants.jsonl in, one record of scores out."""

import collections
import re
import statistics

RELATIONS = ("exact", "gap", "statement", "variable", "near", "other")


def last_name(variable):
    """`k` of shared.k[stage][j]."""
    return re.split(r"\.|->|::", re.sub(r"\[.*?\]", "", variable or ""))[-1].strip("*&() ")


def same_file(one, other):
    return bool(one) and (one == other or one.endswith("/" + other) or other.endswith("/" + one))


def relation(mutant, suspect):
    """How near a suspect is to the edit: one of RELATIONS."""
    here = same_file(suspect.get("file") or "", mutant["file"])
    line = suspect.get("line")
    if here and line == mutant["line"]:
        return "exact"
    if here and line is not None and mutant["first_line"] <= line <= mutant["last_line"]:
        return "statement"
    if here and line is not None and mutant.get("beside") and mutant["beside"][0] <= line <= mutant["beside"][1]:
        return "gap"
    if mutant["variable"] and last_name(suspect.get("variable")) == last_name(mutant["variable"]):
        return "variable"
    if here and line is not None and mutant["first_line"] - 1 <= line <= mutant["last_line"] + 1:
        return "near"
    return "other"


def first_told(mutant):
    """What is told first: suspects, or else the places of the error, or else, where trace agrees, of check's findings."""
    trace, check = mutant["trace"], mutant.get("check") or {}
    if trace["answer"] in ("line", "unsure") and trace["suspects"]:
        return trace["suspects"]
    places = trace.get("error_lines") or (check.get("lines") if trace["verdict"] == "agrees" else None) or []
    return [{"file": file, "line": line} for file, line in places]


def score(mutant):
    """Of a killed mutant that was asked about."""
    trace, check = mutant["trace"], mutant.get("check") or {}
    suspects = trace["suspects"] if trace["answer"] in ("line", "unsure") else []
    relations = [relation(mutant, suspect) for suspect in suspects]
    told = [relation(mutant, place) in ("exact", "gap") for place in first_told(mutant)]

    def among(places):
        return any(same_file(file, mutant["file"]) and line == mutant["line"] for file, line in places)
    scores = {
        "detected": trace["exit"] != 0 or check.get("exit", 0) != 0,
        "answer": trace["answer"],
        "first": relations[0] if relations else None,
        "rank": relations.index("exact") + 1 if "exact" in relations else None,
        "told": told.index(True) + 1 if True in told else None,
        "check_has_line": among(check.get("lines", [])),
        "error_has_line": among(trace.get("error_lines", [])),
        "seconds": trace["seconds"],
    }
    scores["wrong"] = scores["answer"] == "line" and scores["first"] in ("other", None)
    if mutant.get("diagnose"):
        scores["diagnose"] = mutant["diagnose"]["verdict"] or "no verdict"
    if mutant.get("edits"):
        edits = mutant["edits"].get("edits") or {}
        scores["repaired"] = edits.get("found", False)
        scores["edit_seconds"] = edits.get("seconds")
        scores["with_edits"] = score({key: value for key, value in mutant.items() if key != "edits"}
                                     | {"trace": mutant["edits"]})
    return scores


def verdict(mutant):
    """In a few words."""
    scores = score(mutant)
    if scores["answer"] not in ("line", "unsure"):
        return {"not_looked": "not looked", "none": "no line"}.get(scores["answer"], scores["answer"])
    first = {"exact": "exact line", "gap": "beside the gap", "statement": "same statement", "variable": "same variable", "near": "a line beside",
             "other": "another line", None: "no line"}[scores["first"]]
    rank = f", exact line is number {scores['rank']}" if scores["rank"] and scores["rank"] > 1 else ""
    return f"{first}{rank}" + (" (unsure)" if scores["answer"] == "unsure" else "")


COUNTS = {  # of killed mutants that were asked about
    "detected": lambda s: s["detected"],
    "exact_first": lambda s: s["first"] == "exact",
    "exact_in_three": lambda s: s["rank"] is not None and s["rank"] <= 3,
    "place_first": lambda s: s["told"] == 1,
    "place_in_three": lambda s: s["told"] is not None and s["told"] <= 3,
    "same_statement_or_variable": lambda s: s["first"] in ("exact", "gap", "statement", "variable"),
    "within_one_line": lambda s: s["first"] in ("exact", "gap", "statement", "variable", "near"),
    "claimed": lambda s: s["answer"] == "line",
    "claimed_exact": lambda s: s["answer"] == "line" and s["first"] == "exact",
    "wrong": lambda s: s["wrong"],
    "unsure": lambda s: s["answer"] == "unsure",
    "no_line": lambda s: s["answer"] == "none",
    "not_looked": lambda s: s["answer"] == "not_looked",
    "check_has_line": lambda s: s["check_has_line"],
    "error_has_line": lambda s: s["error_has_line"],
}


def tally(mutants):
    """Counts over some mutants, dropped ones among them."""
    outcomes = collections.Counter(m["outcome"] for m in mutants)
    asked = [score(m) for m in mutants if m["outcome"] == "killed" and "trace" in m]
    counts = {"drawn": len(mutants), "does_not_compile": outcomes["does not compile"], "agrees": outcomes["agrees"],
              "killed": outcomes["killed"], "asked": len(asked)}
    counts.update({name: sum(map(test, asked)) for name, test in COUNTS.items()})
    edited = [s for s in asked if "repaired" in s]
    if edited:
        counts["edits_asked"] = len(edited)
        counts["repaired"] = sum(s["repaired"] for s in edited)
        for name in ("exact_first", "exact_in_three", "place_first", "place_in_three", "wrong"):
            counts[f"{name}_alone"] = sum(COUNTS[name](s) for s in edited)
            counts[f"{name}_with_edits"] = sum(COUNTS[name](s["with_edits"]) for s in edited)
    return counts


def seconds(mutants, key="seconds"):
    """Median, what nine in ten keep within, and the most."""
    took = sorted(s[key] for s in (score(m) for m in mutants if "trace" in m) if s.get(key) is not None)
    if not took:
        return None
    return {"median": statistics.median(took), "nine_in_ten": took[(len(took) * 9 + 9) // 10 - 1], "most": took[-1]}


def controls(rows):
    answers = collections.Counter(row["trace"]["answer"] for row in rows)
    return {"cases": len(rows), "random": sum(row["random"] for row in rows), "answers": dict(sorted(answers.items())),
            "false_lines": answers["line"], "does_not_agree": sum(row["trace"]["verdict"] != "agrees" for row in rows)}


def grouped(mutants, key):
    groups = collections.defaultdict(list)
    for mutant in mutants:
        groups[mutant.get(key)].append(mutant)
    return {name: tally(groups[name]) for name in sorted(groups)}
