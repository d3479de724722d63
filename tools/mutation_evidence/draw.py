"""Draws mutants by a seed: of one kernel an operator among those with sites, then a site, then what stands there."""

import dataclasses
import difflib
import random

from mutation_evidence import operators


@dataclasses.dataclass(frozen=True)
class Mutant:
    id: str
    kernel: str
    operator: str
    file: str
    line: int  # where the edit begins; of a deleted statement its first
    column: int
    first_line: int  # of the statement
    last_line: int
    beside: tuple  # of a deleted statement the lines of code before and behind it; else none
    variable: str  # that the statement assigns; '' if it cannot be told
    diff: str
    text: str  # of the whole file, mutated

    def record(self):
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name != "text"}


def header_before(tokens, code):
    """How many of the tokens named by `code` come before the header that they end with, `if (...)` or `for (...)`; all
    of them where they do not end with one."""
    end = len(code)
    if end and tokens[code[-1]].text == "else":
        return end - 1
    depth = 0
    for at in range(end - 1, 0, -1):
        depth += {")": 1, "(": -1}.get(tokens[code[at]].text, 0)
        if depth == 0:
            at -= tokens[code[at - 1]].text == "constexpr"
            return at - 1 if at < end - 1 and tokens[code[at - 1]].text in ("if", "for", "while") else end
    return end


def beside(source, site):
    """The lines of code before and behind a gap. An `if` or a loop of which it was the body does nothing any more, and
    belongs to it."""
    code = [i for i, token in enumerate(source.tokens) if token.kind != "comment"]
    before = [i for i in code if source.tokens[i].end <= site.start]
    behind = [i for i in code if source.tokens[i].start >= site.end]
    while (count := header_before(source.tokens, before)) < len(before):
        before = before[:count]
    return (source.line_of(before[-1]), source.line_of(behind[0]))


def mutate(source, name, kernel, operator, site, instead, number):
    text = source.text[:site.start] + instead + source.text[site.end:]
    diff = "".join(difflib.unified_diff(source.text.splitlines(True), text.splitlines(True), f"a/{name}", f"b/{name}",
                                        n=1))
    return Mutant(id=f"{kernel}-{number:03}", kernel=kernel, operator=operator, file=name,
                  line=source.line_of(site.token), column=source.column_of(site.token),
                  first_line=source.line_of(site.statement.first), last_line=source.last_line_of(site.statement.last),
                  beside=beside(source, site) if operator.endswith("-deleted") else (),
                  variable=site.variable, diff=diff, text=text)


def draw(kernel, sources, seed):
    """Yields mutants of the kernel (its name; {file: Source}), no text twice, until there are no more."""
    chance = random.Random(f"{seed}/{kernel}")
    left = {}
    for name in sorted(sources):
        for operator, sites in operators.sites(sources[name]).items():
            left.setdefault(operator, []).extend((name, site) for site in sites)
    seen, number = set(), 0
    while left:
        operator = chance.choice(sorted(left))
        name, site = left[operator].pop(chance.randrange(len(left[operator])))
        if not left[operator]:
            del left[operator]
        mutant = mutate(sources[name], name, kernel, operator, site, chance.choice(site.instead), number)
        if (name, mutant.text) not in seen:
            seen.add((name, mutant.text))
            yield mutant
            number += 1
