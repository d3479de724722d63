"""What can go wrong in a kernel, as edits of its text: each operator gives the sites at which it applies.

A site is a place and the texts that may stand there instead; a mutant is one of them. To add an operator: a
function `(source) -> sites` with @operator("its-name").
"""

import dataclasses
import re

from mutation_evidence.source import ASSIGNING, KEYWORDS, PAIRS


@dataclasses.dataclass(frozen=True)
class Site:
    start: int  # of the text that is replaced
    end: int
    instead: tuple  # the alternatives
    token: int  # the place that is reported
    statement: object
    variable: str = ""  # that the statement assigns, if it can be told


OPERATORS = {}


def operator(name):
    def add(function):
        OPERATORS[name] = function
        return function
    return add


def sites(source):
    """{operator: its sites, in the order of the text}; without those that have none."""
    found = {}
    for name, function in OPERATORS.items():
        unique = {}
        for place in function(source):
            instead = tuple(dict.fromkeys(t for t in place.instead if t != source.text[place.start:place.end]))
            if instead:
                unique[place.start, place.end, instead] = dataclasses.replace(place, instead=instead)
        if unique:
            found[name] = [unique[key] for key in sorted(unique)]
    return found


# -- helpers

def over(source, *roles):
    """(expression, token) of all that may be mutated; of some roles only."""
    for expression in source.expressions:
        if not roles or expression.role in roles:
            for i in expression.indices():
                if not source.in_angles[i]:
                    yield expression, i


def at(source, expression, first, last, *instead, token=None):
    return site(source, expression, source.tokens[first].start, source.tokens[last].end, instead,
                first if token is None else token)


def site(source, expression, start, end, instead, token):
    return Site(start, end, tuple(instead), token, expression.statement,
                expression.variable or expression.statement.variable)


def calls(source, *roles):
    """(expression, the name's token, its arguments as (first, last))."""
    for expression, i in over(source, *roles):
        if source.words[i] != "(" or i not in source.match or i == 0:
            continue
        name = source.called(i)
        if source.tokens[name].kind == "name" and source.words[name] not in KEYWORDS:
            yield expression, name, source.split(i + 1, source.match[i] - 1)


def is_relational(source, i):
    word = source.words[i]
    if word not in RELATIONS:
        return False
    # A shift, and not a comparison: two > side by side.
    return not (word == ">" and (source.adjacent(i) and source.words[i + 1] in (">", ">=") or
                                 source.words[i - 1] == ">" and source.adjacent(i - 1)))


def in_index(source, expression, i):
    """Whether token i is in brackets [], or in what an integer or a pointer is set to."""
    if expression.type and (source.is_integer(expression.type) or expression.type.endswith("*")):
        return True
    return source.subscript[i] >= expression.first


def integer(text):
    """The value of an integer literal, its suffix and whether it is hexadecimal; None: it is no such."""
    match = re.fullmatch(r"(0[xX][0-9a-fA-F']+|0[bB][01']+|\d[\d']*)([uUlLzZ]*)", text)
    return match and (int(match.group(1).replace("'", ""), 0 if match.group(1)[1:2] in "xXbB" and
                          len(match.group(1)) > 1 else 10), match.group(2), len(match.group(1)) > 1 and
                      match.group(1)[1] in "xX")


def is_float(text):
    return re.fullmatch(r"(\d[\d']*\.\d*|\.\d+|\d+)([eE][+-]?\d+)?[fFlL]?", text) and integer(text) is None


def integers_in_scope(source, expression, type_, but):
    return [name for name, other in expression.scope.items() if other == type_ and name != but]


def conditions(source):
    """(expression, first, last, kind) of what decides: of `if`, and what stands before ?."""
    for expression in source.expressions:
        if expression.role == "condition":
            yield expression, expression.first, expression.last, "if"
    for expression, i in over(source):
        if source.words[i] == "?":
            first = begin_of_condition(source, expression, i)
            if first < i:
                yield expression, first, i - 1, "?"


def begin_of_condition(source, expression, question):
    i = question - 1
    while i >= expression.first:
        word = source.words[i]
        if word in PAIRS.values() and i in source.match:
            i = source.match[i] - 1
            continue
        if word in PAIRS or word in ASSIGNING or word in (",", ";", "?", ":", "return"):
            return i + 1
        i -= 1
    return expression.first


# -- operators and constants

RELATIONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
ARITHMETIC = {"+": "-", "-": "+", "*": "+", "/": "*", "%": "/"}


@operator("relational")
def relational(source):
    for expression, i in over(source):
        if is_relational(source, i):
            yield at(source, expression, i, i, RELATIONS[source.words[i]])


@operator("arithmetic")
def arithmetic(source):
    for expression, i in over(source):
        if source.words[i] in ARITHMETIC and source.tokens[i].kind == "mark" and source.is_binary(i):
            yield at(source, expression, i, i, ARITHMETIC[source.words[i]])


@operator("integer-constant")
def integer_constant(source):
    for expression, i in over(source):
        read = source.tokens[i].kind == "number" and integer(source.words[i])
        if read and not read[2]:
            value, suffix, _ = read
            others = [value + 1, value - 1, value * 2, value // 2]
            yield at(source, expression, i, i, *(f"{v}{suffix}" for v in others if v >= 0))


@operator("float-constant")
def float_constant(source):
    for expression, i in over(source):
        word = source.words[i]
        if source.tokens[i].kind == "number" and is_float(word):
            zero = not re.search("[1-9]", re.split("[eE]", word)[0])
            yield at(source, expression, i, i, *(["1.f"] if zero else [f"(2 * {word})", f"(-{word})"]))
        elif word == "INFINITY" and source.words[i - 1] == "-":
            yield at(source, expression, i - 1, i, "INFINITY", "-1.f", token=i - 1)


@operator("min-max")
def min_max(source):
    for expression, i in over(source):
        if source.tokens[i].kind == "name" and source.words[i + 1:i + 2] == ["("]:
            word = source.words[i]
            if re.fullmatch(r"_*[a-z]*(min|max)[a-z0-9_]*", word):
                swapped = re.sub("min|max", lambda m: "max" if m.group() == "min" else "min", word)
                yield at(source, expression, i, i, swapped)
            elif word in ("atomicMax", "atomicMin"):
                yield at(source, expression, i, i, "atomicMin" if word == "atomicMax" else "atomicMax")


@operator("compound-assignment")
def compound_assignment(source):
    for expression, i in over(source, "expression"):
        if source.words[i] in ASSIGNING - {"="}:
            yield at(source, expression, i, i, "=")


# -- indices

@operator("index-variable")
def index_variable(source):
    for expression, i in over(source):
        word = source.words[i]
        if source.tokens[i].kind != "name" or not in_index(source, expression, i):
            continue
        if word in ("threadIdx", "blockIdx") and source.words[i + 1:i + 2] == ["."]:
            other = {"x": "y", "y": "x", "z": "x"}.get(source.words[i + 2])
            if other:
                yield at(source, expression, i + 2, i + 2, other, token=i)
            continue
        type_ = expression.scope.get(word, "")
        if source.is_integer(type_) and source.words[i - 1] not in (".", "->", "::"):
            yield at(source, expression, i, i, *integers_in_scope(source, expression, type_, word))


@operator("index-offset")
def index_offset(source):
    for expression, i in over(source):
        word = source.words[i]
        if (source.tokens[i].kind == "name" and source.is_integer(expression.scope.get(word, ""))
                and source.words[i - 1] not in (".", "->", "::") and in_index(source, expression, i)
                and not re.match(r"k[A-Z]|[A-Z][A-Z0-9_]*$", word)):
            yield at(source, expression, i, i, f"({word} + 1)", f"({word} - 1)")


@operator("stride")
def stride(source):
    for expression, i in over(source):
        if source.words[i] != "*" or not source.is_binary(i) or not in_index(source, expression, i):
            continue
        last = source.operand_right(i + 1)
        if last is None or source.words[i + 1] in ("(", "-"):
            continue
        word = source.text_of(i + 1, last)
        if last == i + 1 and (read := integer(word)):
            yield at(source, expression, last, last, *(f"{v}{read[1]}" for v in (read[0] * 2, read[0] // 2, read[0] + 1)
                                                       if v))
        elif re.fullmatch(r"[\w.]+", word):
            type_ = expression.scope.get(word, "")
            constants = [name for name in integers_in_scope(source, expression, type_, word)
                         if type_ and re.match(r"k[A-Z]|[A-Z][A-Z0-9_]*$", name)]
            yield at(source, expression, i + 1, last, f"({word} + 1)", f"({word} / 2)", f"({word} * 2)", *constants)


@operator("lane")
def lane(source):
    for expression, name, arguments in calls(source):
        word = source.words[name]
        match = re.fullmatch(r"(__)?(shfl)(_xor|_up|_down)?(_sync)?", word)
        if not match:
            continue
        which = 2 if word.endswith("_sync") else 1
        if len(arguments) <= which:
            continue
        first, last = arguments[which]
        if first == last and (read := integer(source.words[first])):
            others = [read[0] * 2, read[0] // 2, read[0] + 1]
            yield at(source, expression, first, last, *(f"{v}{read[1]}" for v in others if v < 32))
        else:
            said = source.text_of(first, last)
            yield at(source, expression, first, last, f"({said} + 1)", f"({said} ^ 1)", f"({said} / 2)")
        if match.group(3):
            kinds = {"_xor": "_down", "_up": "_down", "_down": "_up"}
            yield at(source, expression, name, name, word.replace(match.group(3), kinds[match.group(3)]))


@operator("mask-constant")
def mask_constant(source):
    for expression, i in over(source):
        word = source.words[i]
        read = source.tokens[i].kind == "number" and integer(word)
        if read and (read[2] or source.words[i - 1] == "&" and source.is_binary(i - 1)):
            form = (lambda v: f"0x{v:x}") if read[2] else str
            yield at(source, expression, i, i, *(form(v) + read[1] for v in (read[0] >> 1, read[0] & ~1, read[0] * 2 + 1)
                                                 if v < 1 << 32))
        elif word == "~" and integer(source.words[i + 1] if i + 1 < len(source.words) else "") == (0, "u", False):
            yield at(source, expression, i, i + 1, "0x7fffffffu", "0xfffffffeu")
        elif word in ("INFINITY", "FLT_MAX") and source.words[i - 1] == "-" and source.words[i - 2] in ("?", ":"):
            yield at(source, expression, i - 1, i, "0.f", token=i - 1)


# -- products and calls

@operator("factor-dropped")
def factor_dropped(source):
    for expression, i in over(source):
        if source.words[i] not in ("*", "/") or not source.is_binary(i) or in_index(source, expression, i):
            continue
        last = source.operand_right(i + 1)
        if last is not None and last <= expression.last:
            text, begin = source.text, source.tokens[i].start
            while text[begin - 1] in " \t":
                begin -= 1
            yield site(source, expression, begin, source.tokens[last].end, [""], i)
        first = source.operand_left(i - 1)
        if source.words[i] == "*" and first is not None and first >= expression.first and (
                source.words[first - 1] not in ("*", "/", "%")):
            yield site(source, expression, source.tokens[first].start, source.tokens[i + 1].start, [""], first)


@operator("arguments-swapped")
def arguments_swapped(source):
    for expression, name, arguments in calls(source):
        if re.search("min|max|add|mul", source.words[name].lower()) and "atomic" not in source.words[name]:
            continue  # the same either way
        for (a, b), (c, d) in zip(arguments, arguments[1:]):
            one, other = source.text_of(a, b), source.text_of(c, d)
            if "{" not in one + other:
                between = source.text[source.tokens[b].end:source.tokens[c].start]
                yield at(source, expression, a, d, other + between + one)


FUNCTIONS = {"exp", "expf", "__expf", "exp2", "exp2f", "log", "logf", "__logf", "log2f", "__log2f", "sqrtf", "rsqrtf",
             "fabsf", "tanhf", "__frcp_rn", "__fsqrt_rn", "hexp", "h2exp", "ex2", "lg2"}


@operator("function-dropped")
def function_dropped(source):
    for expression, name, arguments in calls(source):
        word, close = source.words[name], source.match.get(name + 1)
        if close is None:
            continue
        if word in FUNCTIONS and len(arguments) == 1:
            yield at(source, expression, name, close, f"({source.text_of(*arguments[0])})")
        elif re.fullmatch(r"f?(min|max)f?", word) and len(arguments) == 2:
            first = name - 2 if source.words[name - 1] == "::" and source.words[name - 2] == "std" else name
            yield at(source, expression, first, close, *(f"({source.text_of(*a)})" for a in arguments), token=name)


# -- conditions

@operator("guard-dropped")
def guard_dropped(source):
    for expression, first, last, kind in conditions(source):
        words = source.words
        leaves = kind == "if" and expression.statement.body and words[skip_open(source, expression.statement.body[0])] in (
            "return", "continue", "break")
        yield at(source, expression, first, last, "false" if leaves else "true")
    for expression, i in over(source):
        if source.words[i] == "&&":
            first, last = i, i  # of the chain's operands beside it
            while first > expression.first and not ends_operand(source, first - 1):
                first = source.match[first - 1] if source.words[first - 1] in PAIRS.values() else first - 1
            while last < expression.last and not ends_operand(source, last + 1):
                last = source.match[last + 1] if source.words[last + 1] in PAIRS else last + 1
            if first < i < last:
                yield site(source, expression, source.tokens[first].start, source.tokens[i + 1].start, [""], first)
                yield site(source, expression, source.tokens[i - 1].end, source.tokens[last].end, [""], i + 1)


def skip_open(source, i):
    while source.words[i] == "{":
        i += 1
    return i


def ends_operand(source, i):
    word = source.words[i]
    if word in ("&&", "||", "?", ":", ",", ";", "return") or word in ASSIGNING:
        return True
    return word in (*PAIRS, *PAIRS.values()) and i not in source.match or word in PAIRS and source.match[i] < i


@operator("condition-negated")
def condition_negated(source):
    for expression, first, last, _ in conditions(source):
        yield at(source, expression, first, last, f"!({source.text_of(first, last)})")


# -- statements

def is_barrier(source, statement):
    first, last = statement.first, statement.last - 1
    if statement.kind == "asm":
        said = source.text_of(first, last)
        return bool(re.search(r"bar\.|barrier|wait|commit|fence|membar|arrive", said))
    if source.words[last] != ")" or last not in source.match:
        return False
    name = source.words[source.called(source.match[last])].replace("async", "")
    return bool(re.search("sync|wait|fence|commit|arrive|acquire|release|barrier", name)
                and not re.search("mma|matrix|shfl|ballot|init|popc|reduce", name))


def deleted(source, statement):
    return Site(source.tokens[statement.first].start, source.tokens[statement.last].end, (";",), statement.first,
                statement, statement.variable)


@operator("barrier-deleted")
def barrier_deleted(source):
    for statement in source.statements:
        if (statement.kind in ("expression", "asm") and not statement.variable and is_barrier(source, statement)):
            yield deleted(source, statement)


@operator("statement-deleted")
def statement_deleted(source):
    for statement in source.statements:
        if (statement.kind in ("expression", "asm") and not statement.has_lambda
                and not is_barrier(source, statement)):
            yield deleted(source, statement)


@operator("initialiser")
def initialiser(source):
    for expression in source.expressions:
        if expression.role != "initialiser" or not expression.variable:
            continue
        first, last = expression.first, expression.last
        word, said = source.words[first], source.text_of(first, last)
        if first == last and (read := integer(word)) and not read[2]:
            yield at(source, expression, first, last, f"{read[0] + 1}{read[1]}")
        elif first == last and source.tokens[first].kind == "number" and is_float(word):
            yield at(source, expression, first, last, "0.f" if re.search("[1-9]", word) else "1.f")
        elif said in ("-INFINITY", "-FLT_MAX"):
            yield at(source, expression, first, last, "0.f", "INFINITY")
        elif word == "{" and source.match.get(first) == last and source.words[first - 1] == "=":
            yield site(source, expression, source.tokens[first - 2].end, source.tokens[last].end, [""], first - 1)
        elif source.is_integer(expression.type) and not expression.holes:
            yield at(source, expression, first, last, f"({said}) + 1", f"({said}) - 1")

