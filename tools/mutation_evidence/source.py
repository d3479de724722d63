"""A C++ source as mutants need it: tokens, the device code among them, its statements and what is in scope there.

No compiler's view: a careful guess. What is guessed wrongly gives a mutant that does not compile, and is dropped.
Comments, strings, preprocessor lines, host code, declared types and sizes, and template arguments are never offered.
"""

import bisect
import dataclasses
import re

TOKEN = re.compile(
    r"""(?P<space>\s+|\\\r?\n)
      |(?P<comment>//(?:\\\r?\n|[^\n])*|/\*.*?\*/)
      |(?P<string>(?:u8|[uUL])?R"(?P<fence>[^()\\\s"]*)\(.*?\)(?P=fence)"|(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*")
      |(?P<char>(?:u8|[uUL])?'(?:[^'\\\n]|\\.)+')
      |(?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)
      |(?P<name>[A-Za-z_$][\w$]*)
      |(?P<mark><<<|<<=|>>=|<=>|->\*|\.\.\.|::|->|\+\+|--|<<|<=|>=|==|!=|&&|\|\||\+=|-=|\*=|/=|%=|&=|\|=|\^=|\#\#|.)
    """, re.X | re.S)
PREPROCESSOR = re.compile(r"#(?:\\\r?\n|/\*.*?\*/|[^\n])*", re.S)

PAIRS = {"(": ")", "[": "]", "{": "}"}
SPECIFIERS = {"static", "const", "constexpr", "volatile", "extern", "register", "inline", "thread_local", "mutable",
              "typename", "struct", "enum", "class", "__shared__", "__constant__", "__device__", "__restrict__",
              "__restrict", "__grid_constant__", "consteval", "constinit"}
WITH_PARENTHESES = {"alignas", "__align__", "__attribute__", "__launch_bounds__", "__declspec", "__cluster_dims__",
                    "noexcept", "requires", "decltype", "explicit"}
BUILTIN = {"unsigned", "signed", "int", "long", "short", "char", "float", "double", "bool", "auto", "void"}
KEYWORDS = SPECIFIERS | WITH_PARENTHESES | BUILTIN | {
    "if", "else", "for", "while", "do", "switch", "case", "default", "return", "break", "continue", "goto", "throw",
    "try", "catch", "new", "delete", "sizeof", "alignof", "typeid", "template", "operator", "using", "typedef",
    "namespace", "union", "static_assert", "asm", "__asm__", "__asm", "true", "false", "nullptr", "this", "co_return",
    "co_await", "co_yield", "static_cast", "reinterpret_cast", "const_cast", "dynamic_cast", "public", "private",
    "protected", "friend", "concept", "and", "or", "not"}
INTEGERS = {"int", "unsigned", "unsigned int", "signed int", "long", "long long", "unsigned long", "long int",
            "unsigned long long", "short", "unsigned short", "size_t", "ptrdiff_t", "uint", "ssize_t",
            *(f"{u}int{bits}_t" for u in ("", "u") for bits in (8, 16, 32, 64))}
ASSIGNING = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
ASM = {"asm", "__asm__", "__asm"}


@dataclasses.dataclass(frozen=True, slots=True)
class Token:
    kind: str  # comment, string, char, number, name, mark, preprocessor
    text: str
    start: int
    end: int


def tokens_of(text):
    """All but white space."""
    found, at, line_begins = [], 0, True
    while at < len(text):
        if line_begins and text[at] == "#":
            match, kind = PREPROCESSOR.match(text, at), "preprocessor"
            said = match.group()
            if (comment := re.search(r"//", said)) and "\\\n" not in said[comment.start():]:
                pass  # a comment ends with its line, as the directive does
        else:
            match = TOKEN.match(text, at)
            kind = match.lastgroup if match.lastgroup != "fence" else "string"
        if kind == "space":
            line_begins = line_begins or "\n" in match.group()
        else:
            found.append(Token(kind, match.group(), match.start(), match.end()))
            line_begins = line_begins and kind == "comment"
        at = match.end()
    return found


@dataclasses.dataclass
class Statement:
    """What a mutant of it counts as the same statement: tokens first..last. Of if, for and while: the header."""
    kind: str  # expression, declaration, if, for, while, do, switch, return, asm
    first: int
    last: int
    variable: str = ""  # what it assigns, as `acc` or `shared.k`
    body: tuple = ()  # of if: the tokens of what it guards
    has_lambda: bool = False


@dataclasses.dataclass
class Expression:
    """Tokens that may be mutated: from first to last, without those of lambdas' bodies."""
    role: str  # expression, initialiser, condition, loop-condition, step, return
    first: int
    last: int  # inclusive
    statement: Statement
    scope: dict  # name -> type, of what is visible here
    variable: str = ""  # that is declared, of an initialiser
    type: str = ""  # its type
    holes: list = dataclasses.field(default_factory=list)  # (first, last)

    def indices(self):
        at = self.first
        for first, last in sorted(self.holes):
            yield from range(at, min(first, self.last + 1))
            at = max(at, last + 1)
        yield from range(at, self.last + 1)


def plain_type(words):
    words = [w for w in words if w not in SPECIFIERS and w != "std" and w != "::"]
    return " ".join(words).replace(" *", "*").replace(" &", "").replace("&", "")


class Source:
    def __init__(self, text, device_macros=()):
        self.text = text
        every = tokens_of(text)
        self.tokens = [t for t in every if t.kind not in ("comment", "preprocessor")]
        self.words = [t.text for t in self.tokens]
        self.lines = [0] + [m.end() for m in re.finditer("\n", text)]
        self.match = self._match_brackets()
        self.angles = self._match_angles()  # both ways
        self.in_angles = [False] * len(self.tokens)
        for a, b in self.angles.items():
            for i in range(a, b + 1):  # nothing for the pairs the other way round
                self.in_angles[i] = True
        self.subscript = self._subscripts()  # of each token the innermost [ around it, or -1
        self.aliases = self._aliases()
        self.statements, self.expressions = [], []
        self.device_ranges = []
        self._device_words = {"__global__", "__device__", *device_macros}
        self._find_device_code()

    # -- places

    def line_of(self, i):
        return bisect.bisect_right(self.lines, self.tokens[i].start)

    def column_of(self, i):
        start = self.tokens[i].start
        return start - self.lines[bisect.bisect_right(self.lines, start) - 1] + 1

    def last_line_of(self, i):
        return bisect.bisect_right(self.lines, self.tokens[i].end - 1)

    def text_of(self, first, last):
        return self.text[self.tokens[first].start:self.tokens[last].end]

    def adjacent(self, i):
        """Whether nothing stands between token i and the next."""
        return i + 1 < len(self.tokens) and self.tokens[i].end == self.tokens[i + 1].start

    # -- brackets

    def _match_brackets(self):
        match, open_ = {}, []
        for i, word in enumerate(self.words):
            if self.tokens[i].kind != "mark":
                continue
            if word in PAIRS:
                open_.append(i)
            elif word in PAIRS.values():
                while open_ and PAIRS[self.words[open_[-1]]] != word:
                    open_.pop()  # unbalanced, as by #if: never mind
                if open_:
                    match[i] = open_.pop()
                    match[match[i]] = i
        return match

    def _subscripts(self):
        around, open_ = [], []
        for i, word in enumerate(self.words):
            while open_ and self.match[open_[-1]] <= i:
                open_.pop()
            around.append(open_[-1] if open_ else -1)
            if word == "[" and i in self.match:
                open_.append(i)
        return around

    def _match_angles(self):
        angles = {}
        for i, word in enumerate(self.words):
            if word == "<" and i and i not in angles:
                self._close_angle(i, angles)
        return angles

    def _close_angle(self, i, angles):
        """Notes where the template argument list that begins at i ends; nothing if it is a comparison."""
        head = self.words[i - 1] == "template"
        before = self.tokens[i - 1]
        if not head and (before.kind != "name" or before.end != self.tokens[i].start or before.text == "operator"):
            return None
        j = i + 1
        while j < len(self.words):
            word, kind = self.words[j], self.tokens[j].kind
            if word == ">":
                after = self.words[j + 1] if j + 1 < len(self.words) else ";"
                follows = (after in ("(", "::", "{", "&", "*", ">", ",", ")", ";", "<<<", "...", "]", "&&", "=")
                           or self.tokens[min(j + 1, len(self.words) - 1)].kind == "name")
                if head or follows:
                    angles[i], angles[j] = j, i
                    return j
                return None
            if word == "<":
                inner = self._close_angle(j, angles)
                if inner is None:
                    return None
                j = inner + 1
                continue
            if word in ("(", "["):
                if j not in self.match:
                    return None
                j = self.match[j] + 1
                continue
            if not (kind in ("name", "number", "char") or word in ("::", ",", "*", "&", "...", "+", "-", "/", "%")
                    or head and word in ("=", "&&", "||", "!")):
                return None
            j += 1
        return None

    # -- types

    def _aliases(self):
        found = {}
        for m in re.finditer(r"\btypedef\s+([\w\s:]+?)\s+(\w+)\s*;|\busing\s+(\w+)\s*=\s*([\w\s:]+?)\s*;", self.text):
            old, new = (m.group(1), m.group(2)) if m.group(2) else (m.group(4), m.group(3))
            found[new] = plain_type(re.findall(r"\w+|::", old))
        return found

    def is_integer(self, type_):
        return self.aliases.get(type_, type_) in INTEGERS

    def _type_at(self, i, end):
        """(the token after a type that begins at i, its words), or None."""
        words = []
        while i <= end:
            word = self.words[i]
            if word in WITH_PARENTHESES and i + 1 in self.match:
                i = self.match[i + 1] + 1
            elif word == "[" and self.words[i + 1:i + 2] == ["["] and i in self.match:
                i = self.match[i] + 1
            elif word in SPECIFIERS:
                i += 1
            else:
                break
        if i > end or self.tokens[i].kind != "name" and self.words[i] != "::":
            return None
        if self.words[i] in BUILTIN:
            while i <= end and (self.words[i] in BUILTIN or self.words[i] in ("const", "volatile")):
                words.append(self.words[i])
                i += 1
        elif self.words[i] in KEYWORDS:
            return None
        else:
            while i <= end:
                if self.words[i] == "::":
                    words.append("::")
                    i += 1
                    if i <= end and self.words[i] == "template":
                        i += 1
                    continue
                if self.tokens[i].kind != "name" or self.words[i] in KEYWORDS:
                    return None
                words.append(self.words[i])
                i += 1
                if i in self.angles and self.words[i] == "<":
                    words.append(self.text_of(i, self.angles[i]))
                    i = self.angles[i] + 1
                if i > end or self.words[i] != "::":
                    break
        while i <= end and (self.words[i] in ("*", "&", "&&") or self.words[i] in SPECIFIERS
                            or self.words[i] in WITH_PARENTHESES):
            if self.words[i] in ("*", "&", "&&"):
                words.append(self.words[i])
                i += 1
            elif self.words[i] in WITH_PARENTHESES:
                if i + 1 not in self.match:
                    return None
                i = self.match[i + 1] + 1
            else:
                i += 1
        return i, words

    def _declarator(self, i, end):
        """(name's token, the token after the name and its sizes, whether it has sizes), or None."""
        sizes = False
        if i > end:
            return None
        if self.words[i] == "(" and i in self.match and self.words[i + 1] in ("*", "&"):
            name = self.match[i] - 1
            if self.tokens[name].kind != "name":
                return None
            i, sizes = self.match[i] + 1, True
        elif self.tokens[i].kind == "name" and self.words[i] not in KEYWORDS:
            name = i
            i += 1
        else:
            return None
        while i <= end and self.words[i] == "[" and i in self.match:
            i, sizes = self.match[i] + 1, True
        return name, i, sizes

    def _is_declaration(self, i, end):
        read = self._type_at(i, end)
        if read is None:
            return False
        if self.words[read[0]:read[0] + 1] == ["["] and "auto" in read[1]:
            return True
        declared = self._declarator(read[0], end)
        if declared is None:
            return False
        after = self.words[declared[1]] if declared[1] <= end else ";"
        return after in ("=", ";", ",", "(", "{", ":")

    # -- device code

    def _find_device_code(self):
        self._file_scope = {}
        i, n = 0, len(self.words)
        while i < n:
            word = self.words[i]
            if word in self._device_words:
                body = self._function_body(i)
                if body:
                    open_, parameters = body
                    scope = dict(self._file_scope)
                    scope.update(self._template_parameters(i))
                    if parameters is not None:
                        scope.update(self._parameters(parameters))
                    self.device_ranges.append((open_, self.match[open_]))
                    self._block(open_ + 1, self.match[open_], scope)
                    i = self.match[open_] + 1
                    continue
            if word in ("constexpr", "const", "static") and self._is_file_scope(i):
                end = self._semicolon(i, n)
                if end is not None and self._is_declaration(i, end):
                    self._declare(i, end, self._file_scope, None)
            i += 1

    def _is_file_scope(self, i):
        return i == 0 or self.words[i - 1] in (";", "}", "{")

    def _semicolon(self, i, end):
        while i < end:
            if self.words[i] == ";":
                return i
            if self.words[i] in PAIRS:
                if i not in self.match:
                    return None
                i = self.match[i]
            elif self.words[i] in PAIRS.values():
                return None
            i += 1
        return None

    def _function_body(self, i):
        """(its {, the ( of its parameters or None) of the function whose specifiers token i is among."""
        parameters, initialisers = None, False
        while i < len(self.words):
            word = self.words[i]
            if word in (";", "}", "=") and not (word == "=" and self.words[i - 1] == "operator"):
                return None
            if word == "(":
                if i not in self.match:
                    return None
                before = self.words[i - 1]
                if before == "operator" and self.words[i + 1] == ")":
                    i += 1  # operator()
                elif before not in WITH_PARENTHESES and parameters is None:
                    parameters = i
                    i = self.match[i]
                else:
                    i = self.match[i]
            elif i in self.angles and word == "<":
                i = self.angles[i]
            elif word == ":" and parameters is not None:
                initialisers = True
            elif word == "{":
                if parameters is None or i not in self.match:
                    return None
                if initialisers and self.tokens[i - 1].kind == "name" and self.words[self.match[i] + 1] in (",", "{"):
                    i = self.match[i]  # of a member: name{value}
                else:
                    return i, parameters
            i += 1
        return None

    def _template_parameters(self, i):
        """Of the template<> before the function: its integers."""
        while i and self.words[i - 1] not in (";", "}", "{"):
            i -= 1
        scope = {}
        if self.words[i] == "template" and i + 1 in self.angles:
            for m in re.finditer(r"\b(int|unsigned|size_t|bool)\s+(\w+)", self.text_of(i + 1, self.angles[i + 1])):
                scope[m.group(2)] = m.group(1)
        return scope

    def _parameters(self, open_):
        scope = {}
        for first, last in self.split(open_ + 1, self.match[open_] - 1):
            read = self._type_at(first, last)
            declared = read and self._declarator(read[0], last)
            if declared:
                name, _, sizes = declared
                scope[self.words[name]] = plain_type(read[1]) + ("[]" if sizes else "")
        return scope

    def split(self, first, last, at=","):
        """The parts of tokens first..last between commas that are in no bracket."""
        parts, i, begin = [], first, first
        while i <= last:
            word = self.words[i]
            if word in PAIRS and i in self.match:
                i = self.match[i]
            elif word == "<" and i in self.angles:
                i = self.angles[i]
            elif word == at:
                parts.append((begin, i - 1))
                begin = i + 1
            i += 1
        if first <= last:
            parts.append((begin, last))
        return parts

    # -- statements

    def _block(self, i, end, scope):
        while i < end:
            i = self._statement(i, end, scope)

    def _statement(self, i, end, scope):
        """Reads the statement at token i; gives the token after it."""
        word = self.words[i]
        following = self.words[i + 1] if i + 1 < end else ""
        if word == "{":
            self._block(i + 1, self.match.get(i, end), dict(scope))
            return self.match.get(i, end) + 1
        if word in (";", "}"):
            return i + 1
        if word in ("if", "while", "switch"):
            return self._guarded(i, end, dict(scope))
        if word == "for" and following == "(":
            return self._for(i, end, dict(scope))
        if word == "do":
            after = self._statement(i + 1, end, dict(scope))
            if after + 1 < end and self.words[after] == "while" and after + 1 in self.match:
                close = self.match[after + 1]
                statement = self._add(Statement("do", after, close))
                self._expression("loop-condition", after + 2, close - 1, statement, scope)
                return close + 2
            return after
        if word in ("case", "default"):
            while i < end and self.words[i] != ":":
                i += 1
            return i + 1
        if self.tokens[i].kind == "name" and word not in KEYWORDS:
            if following == ":":
                return i + 2  # a label
            if following in ("for", "if", "while", "do"):
                return i + 1  # a macro, as UNROLL
        stop = self._semicolon(i, end)
        if stop is None:  # a macro without ;, as the rest of it
            return end
        if word in ("break", "continue", "goto", "using", "typedef", "static_assert", "struct", "class", "enum",
                    "union", "else", "template"):
            return stop + 1
        if word in ASM:
            self._add(Statement("asm", i, stop))
            return stop + 1
        if word in ("return", "throw", "co_return"):
            statement = self._add(Statement("return", i, stop))
            if word == "return" and i + 1 < stop:
                self._expression("return", i + 1, stop - 1, statement, scope)
            return stop + 1
        if self._is_declaration(i, stop):
            self._declare(i, stop, scope, self._add(Statement("declaration", i, stop)))
            return stop + 1
        statement = self._add(Statement("expression", i, stop, self.assigned(i, stop - 1)))
        self._expression("expression", i, stop - 1, statement, scope)
        return stop + 1

    def _add(self, statement):
        self.statements.append(statement)
        return statement

    def _guarded(self, i, end, scope):
        word, open_ = self.words[i], i + 1
        if self.words[open_] == "constexpr":
            open_ += 1
        if self.words[open_] != "(" or open_ not in self.match:
            return i + 1
        close = self.match[open_]
        statement = self._add(Statement(word, i, close))
        parts = self.split(open_ + 1, close - 1, ";")
        for first, last in parts[:-1]:
            if self._is_declaration(first, last + 1):
                self._declare(first, last + 1, scope, statement)
        role = {"if": "condition", "while": "loop-condition", "switch": "expression"}[word]
        if parts:
            first, last = parts[-1]
            if self._is_declaration(first, last + 1):
                self._declare(first, last + 1, scope, statement)
            elif first <= last:
                self._expression(role, first, last, statement, scope)
        after = self._statement(close + 1, end, dict(scope))
        statement.body = close + 1, after - 1
        if word == "if":
            guarded = [s for s in self.statements if close < s.first and s.last < after]
            if len(guarded) == 1:
                statement.variable = guarded[0].variable
            if after < end and self.words[after] == "else":
                return self._statement(after + 1, end, scope)
        return after

    def _for(self, i, end, scope):
        close = self.match.get(i + 1)
        if close is None:
            return i + 1
        statement = self._add(Statement("for", i, close))
        parts = self.split(i + 2, close - 1, ";")
        if len(parts) >= 2:
            first, last = parts[0]
            if first <= last:
                if self._is_declaration(first, last + 1):
                    self._declare(first, last + 1, scope, statement)
                else:
                    self._expression("initialiser", first, last, statement, scope)
            if parts[1][0] <= parts[1][1]:
                self._expression("loop-condition", *parts[1], statement, scope)
            for first, last in parts[2:]:
                if first <= last:
                    self._expression("step", first, last, statement, scope)
        else:  # over a range
            read = self._type_at(i + 2, close - 1)
            declared = read and self._declarator(read[0], close - 1)
            if declared:
                scope[self.words[declared[0]]] = plain_type(read[1])
        return self._statement(close + 1, end, scope)

    def _declare(self, i, stop, scope, statement):
        """Puts what is declared from token i to the ; into the scope, and its initialisers among the expressions."""
        i, words = self._type_at(i, stop)
        if self.words[i] == "[" and i in self.match:  # structured binding
            for j in range(i + 1, self.match[i]):
                if self.tokens[j].kind == "name":
                    scope[self.words[j]] = ""
            i = self.match[i] + 1
            if statement and self.words[i] == "=" and i + 1 < stop:
                self._expression("initialiser", i + 1, stop - 1, statement, scope)
            return
        names = []
        for first, last in self.split(i, stop - 1):
            pointer = 0
            while self.words[first] in ("*", "&", "const", "__restrict__") and first < last:
                pointer += self.words[first] == "*"
                first += 1
            declared = self._declarator(first, last)
            if declared is None:
                continue
            name, after, sizes = declared
            type_ = plain_type(words) + "*" * pointer + ("[]" if sizes else "")
            if after <= last and statement:
                begin, stop_at = after, last
                if self.words[after] == "=":
                    begin = after + 1
                elif self.words[after] in ("(", "{") and after in self.match:
                    begin, stop_at = after + 1, self.match[after] - 1
                if begin <= stop_at:
                    self._expression("initialiser", begin, stop_at, statement, scope, self.words[name], type_)
            scope[self.words[name]] = type_
            names.append(self.words[name])
        if statement and statement.kind == "declaration" and len(names) == 1:
            statement.variable = names[0]

    def _expression(self, role, first, last, statement, scope, variable="", type_=""):
        expression = Expression(role, first, last, statement, dict(scope), variable, type_)
        self.expressions.append(expression)
        i = first
        while i <= last:
            if self.words[i] == "[" and self._begins_lambda(i):
                body = self._lambda_body(i, last)
                if body:
                    open_, parameters = body
                    inner = dict(scope)
                    if parameters is not None:
                        inner.update(self._parameters(parameters))
                    expression.holes.append((i, self.match[open_]))
                    statement.has_lambda = True
                    self._block(open_ + 1, self.match[open_], inner)
                    i = self.match[open_]
            i += 1

    def _begins_lambda(self, i):
        if i not in self.match or self.words[i + 1] == "[":
            return False
        before = self.tokens[i - 1]
        return not (before.text in (")", "]", ">") or before.kind in ("string",)
                    or before.kind == "name" and before.text != "return")

    def _lambda_body(self, i, last):
        i = self.match[i] + 1
        parameters = None
        while i <= last:
            if self.words[i] == "{" and i in self.match:
                return i, parameters
            if self.words[i] == "(" and i in self.match:
                if parameters is None:
                    parameters = i
                i = self.match[i]
            elif self.words[i] == "<" and i in self.angles:
                i = self.angles[i]
            elif self.words[i] in (";", ",", ")"):
                return None
            i += 1
        return None

    # -- what a statement assigns

    def path_of(self, first, last):
        """`shared.k` of shared.k[i][j]; `dst` of *reinterpret_cast<T*>(dst + c); '' if it cannot be told."""
        while first <= last and (self.words[first] in ("*", "&", "(", "++", "--")):
            if self.words[first] == "(" and self._is_cast(first):
                first = self.match[first]
            first += 1
        if first <= last and self.words[first].endswith("_cast") and first + 1 in self.angles:
            first = self.angles[first + 1] + 1
            return self.path_of(first, self.match.get(first, last))
        path, i = [], first
        while i <= last:
            if self.tokens[i].kind == "name" and self.words[i] not in KEYWORDS - {"this"}:
                path.append(self.words[i])
                i += 1
                while i <= last and self.words[i] in ("[", "(") and i in self.match:
                    i = self.match[i] + 1
                if i <= last and self.words[i] in (".", "->", "::"):
                    i += 1
                    continue
            break
        return ".".join(path).replace("this.", "")

    # Functions that write to their first argument.
    WRITING = re.compile(r"^(mma_sync|fill_fragment|load_matrix_sync|store_matrix_sync|atomic\w+|memcpy_async|memcpy|"
                         r"__pipeline_memcpy_async)$")

    def called(self, open_):
        """The token before the ( of a call that is the function's name: f of f<0>(x)."""
        name = open_ - 1
        return self.angles[name] - 1 if self.words[name] == ">" and name in self.angles else name

    def assigned(self, first, last):
        i = first
        while i <= last:
            if self.words[i] in PAIRS and i in self.match:
                i = self.match[i]
            elif self.words[i] in ASSIGNING:
                return self.path_of(first, i - 1)
            i += 1
        if self.words[first] in ("++", "--") or self.words[last] in ("++", "--"):
            return self.path_of(first, last)
        if self.words[last] == ")" and last in self.match:
            open_ = self.match[last]
            called = self.words[self.called(open_)]
            if open_ > first and self.WRITING.match(called):
                arguments = self.split(open_ + 1, last - 1)
                if arguments:
                    return self.path_of(*arguments[called == "memcpy_async" and len(arguments) > 3])
        return ""

    # -- expressions

    def _is_cast(self, open_):
        """Whether ( begins (type)operand."""
        close = self.match.get(open_)
        if close is None or close == open_ + 1 or close + 1 >= len(self.words):
            return False
        if open_ and (self.tokens[open_ - 1].kind == "name" and self.words[open_ - 1] not in ("return",)
                      or self.words[open_ - 1] in (")", "]", ">") and open_ - 1 in (*self.match, *self.angles)):
            return False
        read = self._type_at(open_ + 1, close - 1)
        if read is None or read[0] != close:
            return False
        sure = any(w in BUILTIN or w == "*" or w.endswith("_t") or w in ("half", "__half", "half2", "uint4", "float4")
                   for w in read[1])
        return sure and (self.tokens[close + 1].kind in ("name", "number") or self.words[close + 1] in
                         ("(", "-", "*", "&", "~", "!"))

    def is_binary(self, i):
        """Whether the + - * / & at token i has an operand on its left."""
        if i == 0 or i + 1 >= len(self.words):
            return False
        before = self.tokens[i - 1]
        if self.words[i + 1] in (")", ">", ",", ";", "]", "*", "&") and self.words[i] in ("*", "&"):
            if self.words[i + 1] not in ("*", "&"):
                return False
        if before.kind in ("number", "char"):
            return True
        if before.kind == "name":
            return before.text not in KEYWORDS or before.text in ("this", "true", "false")
        if before.text == ")":
            return not (i - 1 in self.match and self._is_cast(self.match[i - 1]))
        return before.text in ("]", "}")

    def operand_right(self, i):
        """The last token of the operand that begins at token i; None if it cannot be told."""
        n = len(self.words)
        while i < n and (self.words[i] in ("-", "+", "!", "~", "*", "&", "++", "--")
                         or self.words[i] == "(" and self._is_cast(i)):
            i = self.match[i] + 1 if self.words[i] == "(" else i + 1
        if i >= n:
            return None
        if self.words[i] == "(":
            if i not in self.match:
                return None
            i = self.match[i]
        elif self.tokens[i].kind not in ("name", "number") and self.words[i] != "::":
            return None
        elif self.words[i] == "[":
            return None
        while i + 1 < n:
            word = self.words[i + 1]
            if word in ("(", "[") and i + 1 in self.match:
                i = self.match[i + 1]
            elif word == "<" and i + 1 in self.angles:
                i = self.angles[i + 1]
            elif word in (".", "->", "::") and i + 2 < n:
                i += 2
            elif word == "{" and i + 1 in self.match and self.tokens[i].kind == "name":
                i = self.match[i + 1]
            elif word in ("++", "--"):
                i += 1
            else:
                break
        return i

    def operand_left(self, i):
        """The first token of the operand that ends at token i; None if it cannot be told."""
        while True:
            word = self.words[i]
            if word in (")", "]", "}"):
                if i not in self.match:
                    return None
                i = self.match[i]
                before = self.tokens[i - 1]
                if before.text in (")", "]") or before.kind == "name" and before.text not in ("return", "if", "while"):
                    if not (before.text == ")" and self._is_cast(self.match.get(i - 1, i))):
                        i -= 1
                        continue
                if before.text == ">" and i - 1 in self.angles:
                    i = self.angles[i - 1] - 1
                    continue
            elif word == ">" and i in self.angles:
                i = self.angles[i] - 1
                continue
            elif self.tokens[i].kind not in ("name", "number"):
                return None
            if self.words[i - 1] in (".", "->", "::"):
                i -= 2
                continue
            break
        while i and self.words[i - 1] == ")" and i - 1 in self.match and self._is_cast(self.match[i - 1]):
            i = self.match[i - 1]
        while i and self.words[i - 1] in ("-", "+", "!", "~", "*", "&") and not self.is_binary(i - 1):
            i -= 1
        return i
