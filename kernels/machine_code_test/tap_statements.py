"""Deletes the tap statements of a kernel source: those that begin their line with `tap.`, `if (tap.` or
`if constexpr (Tap::` (attn_diag/kernels/tap.h)."""

import re

START = re.compile(r"^[ \t]*(tap\.|if \(tap\.|if constexpr \(Tap::)", re.MULTILINE)
OPENING = {"(": ")", "{": "}", "[": "]"}


def _end_of_statement(text, begin):
    """The index after the statement that begins at `begin`: after its `;`, or after its block."""
    closing = []
    is_if = text.startswith("if", begin)
    for i in range(begin, len(text)):
        c = text[i]
        if c in OPENING:
            closing.append(OPENING[c])
        elif closing and c == closing[-1]:
            closing.pop()
            if c == "}" and not closing and is_if:
                if re.match(r"\s*else\b", text[i + 1:]):
                    raise ValueError("a tap statement must not have an else: " + text[begin:i + 10])
                return i + 1
        elif c == ";" and not closing:
            return i + 1
    raise ValueError("this statement does not end: " + text[begin:begin + 60])


def delete_tap_statements(text):
    """Returns (the text without its tap statements, how many there were). Lines keep their
    numbers."""
    result, done, count = [], 0, 0
    for match in START.finditer(text):
        begin = match.start(1)
        if begin < done:
            continue  # within a statement that was deleted
        end = _end_of_statement(text, begin)
        result.append(text[done:begin])
        result.append("\n" * text.count("\n", begin, end))
        done = end
        count += 1
    result.append(text[done:])
    return "".join(result), count
