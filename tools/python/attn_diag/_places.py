"""Where in a user's Python code a number is made, in the words that the harness knows of a place in a source
(value_callouts::Site): the variable, those that it is made of, and the loops and conditions around it."""

from __future__ import annotations

import ast
import functools
import itertools
import os
import sys
from types import CodeType, FrameType
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep
_LIBRARIES = ("triton", "torch", "numpy", "functools", "contextlib", "inspect")
_FLOATS = {"inf": float("inf"), "-inf": float("-inf")}
_MOST_USES = 48

Words = Tuple[int, int, str, str, str, str, str, str]


@functools.lru_cache(maxsize=None)
def _library_paths() -> Tuple[str, ...]:
    paths = [_OURS]
    for name in _LIBRARIES:
        file = getattr(sys.modules.get(name), "__file__", None)
        if file:
            package = os.path.basename(file) == "__init__.py"
            paths.append(os.path.dirname(os.path.abspath(file)) + os.sep if package else os.path.abspath(file))
    return tuple(paths)


@functools.lru_cache(maxsize=None)
def is_users(file: str) -> bool:
    return not file.startswith("<") and not os.path.abspath(file).startswith(_library_paths())


def _escaped(path: str) -> str:
    return "".join(f"%{ord(c):02X}" if c in " ,:@=~%" else c for c in path)


def _constant(node: Optional[ast.expr]) -> Optional[float]:
    """What an assigned expression is, where it is a number: 0.0, float("inf"), tl.zeros(...) - float("inf")."""
    if isinstance(node, ast.Constant) and isinstance(node.value, float):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _constant(node.operand)
        return None if value is None else -value
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        left, right = _constant(node.left), _constant(node.right)
        if left is None or right is None:
            return None
        return left + right if isinstance(node.op, ast.Add) else left - right
    if not isinstance(node, ast.Call):
        return None
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name == "zeros":
        return 0.0
    if name == "float" and len(node.args) == 1 and isinstance(node.args[0], ast.Constant):
        return _FLOATS.get(str(node.args[0].value).replace("infinity", "inf"))
    if name == "full" and len(node.args) > 1:
        return _constant(node.args[1])
    return None


def _names(node: ast.AST) -> Iterator[str]:
    for child in ast.walk(node):
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Load):
            yield child.id


class Assignment:
    def __init__(self, line: int, value: Optional[ast.expr]):
        self.line, self.value = line, value


class Function:
    """A function of a file, or the file itself: what is assigned where, and what surrounds what."""

    def __init__(self, node: Any, file: str, name: str):
        self.node, self.file, self.name = node, file, name
        self.assigned: Dict[str, List[Assignment]] = {}
        self.around: Dict[ast.AST, List[ast.AST]] = {}  # loops and conditions, the innermost first
        self.parents: Dict[ast.AST, ast.AST] = {}
        self.by_line: Dict[int, List[ast.AST]] = {}
        for statement in node.body:
            self._visit(statement, node, [])
        arguments = getattr(node, "args", None)
        self.parameters = [] if arguments is None else [
            a.arg for a in itertools.chain(arguments.posonlyargs, arguments.args, arguments.kwonlyargs)]

    def _visit(self, node: ast.AST, parent: ast.AST, around: List[ast.AST]) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return
        self.parents[node] = parent
        if isinstance(node, (ast.stmt, ast.expr)):
            self.around[node] = around
            self.by_line.setdefault(node.lineno, []).append(node)
        self._note(node)
        inner = [node, *around] if isinstance(node, (ast.For, ast.While, ast.If)) else around
        test = getattr(node, "iter" if isinstance(node, ast.For) else "test", None) if inner is not around else None
        for child in ast.iter_child_nodes(node):
            self._visit(child, node, around if child is test else inner)

    def _note(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._assign(target, node.lineno, node.value)
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.NamedExpr)):
            self._assign(node.target, node.lineno, node.value)
        elif isinstance(node, ast.For):
            self._assign(node.target, node.lineno, node.iter)

    def _assign(self, target: ast.expr, line: int, value: Optional[ast.expr]) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            several = isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts)
            for i, one in enumerate(target.elts):
                self._assign(one, line, value.elts[i] if several else value)  # type: ignore[union-attr]
        elif isinstance(target, ast.Name):
            self.assigned.setdefault(target.id, []).append(Assignment(line, value))
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            self.assigned.setdefault(target.value.id, []).append(Assignment(line, value))

    def at(self, lines: Tuple[Optional[int], ...], first: int) -> Optional[ast.AST]:
        """The expression or statement at (line, end line, column, end column); the smallest statement of the line
        where none is there."""
        line, end, column, end_column = lines
        statement: Optional[ast.AST] = None
        for shift in {0, first}:
            for node in self.by_line.get(line or 0, []):
                place = (node.end_lineno, node.col_offset, node.end_col_offset)  # type: ignore[attr-defined]
                if column is not None and place == (end, column + shift, (end_column or 0) + shift):
                    return node
                if isinstance(node, ast.stmt):
                    statement = statement or node
        if statement is None:
            nodes = self.by_line.get(line or 0, [])
            return nodes[0] if nodes else None
        return statement


class Source:
    def __init__(self, file: str):
        self.functions: Dict[Tuple[str, int], Function] = {}
        self.module: Optional[Function] = None
        try:
            with open(file, encoding="utf-8") as opened:
                tree = ast.parse(opened.read())
        except (OSError, SyntaxError, ValueError):
            return
        self.module = Function(tree, file, "")
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                function = Function(node, file, node.name)
                self.functions[node.name, node.lineno] = function
                for decorator in node.decorator_list:
                    self.functions.setdefault((node.name, decorator.lineno), function)

    def function_of(self, code: CodeType) -> Optional[Function]:
        found = self.functions.get((code.co_name, code.co_firstlineno))
        if found is not None or code.co_name == "<module>":
            return found or self.module
        around = [f for f in self.functions.values()  # of a lambda or a comprehension
                  if f.node.lineno <= code.co_firstlineno <= f.node.end_lineno]
        return max(around, key=lambda f: f.node.lineno) if around else self.module


@functools.lru_cache(maxsize=None)
def _source(file: str) -> Source:
    return Source(file)


class Level:
    """A function that is running, where in it, and who called it."""

    def __init__(self, code: CodeType, at: int, caller: Optional["Level"]):
        self.caller, self.file = caller, os.path.abspath(code.co_filename)
        positions = next(itertools.islice(code.co_positions(), at // 2, None), (None,) * 4)
        self.line = positions[0] or code.co_firstlineno
        self.column = (positions[2] or 0) + 1
        self.function = _source(self.file).function_of(code)
        self.name = code.co_name
        shift = self.function.node.col_offset if self.function is not None and self.function.name else 0
        self.node = None if self.function is None else self.function.at(positions, shift)

    def argument(self, parameter: str) -> Optional[ast.expr]:
        """What the caller passed as that parameter."""
        if self.caller is None or self.function is None or not isinstance(self.caller.node, ast.AST):
            return None
        for call in ast.walk(self.caller.node):
            name = getattr(getattr(call, "func", None), "id", None)
            if not isinstance(call, ast.Call) or name != self.function.name:
                continue
            for keyword in call.keywords:
                if keyword.arg == parameter:
                    return keyword.value
            place = self.function.parameters.index(parameter) if parameter in self.function.parameters else -1
            return call.args[place] if 0 <= place < len(call.args) else None
        return None


def _sources_of(level: Level, node: Optional[ast.AST]) -> str:
    """Which indices of the program an expression is made of (x, y, z), and whether of a range within it (t)."""
    found: Set[str] = set()
    seen: Set[Tuple[int, str]] = set()
    pending: List[Tuple[Level, Optional[ast.AST]]] = [(level, node)]
    while pending:
        at, expression = pending.pop()
        if expression is None:
            continue
        for call in ast.walk(expression):
            name = getattr(getattr(call, "func", None), "attr", "")
            if name == "program_id" and isinstance(call, ast.Call):
                found.add("xyz"[_constant_axis(call) or 0])
            elif name == "arange":
                found.add("t")
        for name in _names(expression):
            if (id(at), name) in seen or at.function is None:
                continue
            seen.add((id(at), name))
            for one in at.function.assigned.get(name, []):
                pending.append((at, one.value))
            if name in at.function.parameters and at.caller is not None:
                pending.append((at.caller, at.argument(name)))
    return "".join(sorted(found, key="xyzt".index))


class Spot:
    """A place in the user's code, with the calls around it in code that runs with it."""

    def __init__(self, level: Level, in_kernel: bool = True):
        self.level, self.in_kernel = level, in_kernel  # of code of the host no calls are told
        self.line, self.file = level.line, level.file

    def text(self) -> str:
        return f"{os.path.basename(self.file)}:{self.line}"

    def _line(self, level: Level, line: int) -> str:
        return str(line) if level.file == self.file else f"{line}~{_escaped(level.file)}"

    def _uses(self, expressions: List[Optional[ast.AST]], deep: bool, separator: str, level: Optional[Level] = None) -> str:
        """The variables that these are made of, nearest first."""
        pending = [(level or self.level, e) for e in expressions]
        told: Set[Tuple[int, str]] = set()
        words: List[str] = []
        while pending and len(words) < _MOST_USES:
            at, expression = pending.pop(0)
            if expression is None or at.function is None:
                continue
            for name in _names(expression):
                if (id(at), name) in told:
                    continue
                told.add((id(at), name))
                for one in at.function.assigned.get(name, []):
                    constant = _constant(one.value)
                    words.append(f"{name}@{self._line(at, one.line)}" + ("" if constant is None else f"={constant}")
                                 + (":" + _sources_of(at, one.value) if deep else ""))
                    if deep:
                        pending.append((at, one.value))
                if name in at.function.parameters and at.caller is not None:
                    pending.append((at.caller, at.argument(name)))
        return "".join(word + separator for word in words)

    def _conditions(self, mask: Optional[ast.expr]) -> str:
        words = ""
        if mask is not None:
            line = mask.lineno
            function = self.level.function
            while isinstance(mask, ast.Subscript):
                mask = mask.value
            if isinstance(mask, ast.Name) and function is not None and mask.id in function.assigned:
                line = function.assigned[mask.id][0].line
            words += f"if {self._line(self.level, line)} {self._uses([mask], True, ' ')},"
        level: Optional[Level] = self.level
        while level is not None:
            around = level.function.around.get(level.node, []) if level.function is not None and level.node is not None else []
            for node in around:
                test = node.iter if isinstance(node, ast.For) else getattr(node, "test", None)
                kind = "if" if isinstance(node, ast.If) else "loop"
                words += f"{kind} {self._line(level, node.lineno)} {self._uses([test], True, ' ', level)},"  # type: ignore[attr-defined]
            level = level.caller
        return words

    def _variable(self, address: Optional[ast.AST]) -> str:
        if address is not None:
            while isinstance(address, ast.BinOp):
                address = address.left
            return next(_names(address), "")
        level, node = self.level, self.level.node
        if node is None or level.function is None:
            return ""
        statement = level.function.parents.get(node) if isinstance(node, ast.expr) else node
        target: Any = None
        if isinstance(statement, ast.Assign) and (statement is node or statement.value is node):
            target = statement.targets[0]
        elif isinstance(statement, (ast.AugAssign, ast.AnnAssign)):
            target = statement.target if statement is node or isinstance(statement, ast.AnnAssign) else None
        while isinstance(target, ast.Subscript):
            target = target.value
        return target.id if isinstance(target, ast.Name) else ""

    def words(self, role: str, chosen: Optional["Spot"] = None) -> Words:
        """line, column, file, function, variable, conditions, uses, callers. `chosen`: where what this condition decides
        is named."""
        node = self.level.node
        call = node if isinstance(node, ast.Call) else getattr(node, "value", None)
        address = mask = None
        if role == "address" and isinstance(call, ast.Call):
            address = call.args[0] if call.args else None
            name = getattr(call.func, "attr", "")
            at = 1 if name == "load" else 2
            mask = next((k.value for k in call.keywords if k.arg == "mask"),
                        call.args[at] if name in ("load", "store") and len(call.args) > at else None)
        if role == "condition" and isinstance(call, ast.Call) and call.args:
            uses = self._uses([call.args[0]], True, ",")
        elif role == "condition":
            uses = self._uses([node], True, ",")
        else:
            uses = self._uses([address if address is not None else node], address is not None, ",")
        callers = ""
        level = self.level.caller if self.in_kernel else None
        while level is not None:
            callers += self._line(level, level.line) + ","
            level = level.caller
        variable = (chosen or self)._variable(address)
        return (self.line, self.level.column, self.file, self.level.name, variable, self._conditions(mask), uses, callers)


def _bare(function: Function, node: Any) -> Spot:
    """A place where nothing ran."""
    level = Level.__new__(Level)
    level.caller, level.file, level.line, level.column = None, function.file, node.lineno, node.col_offset + 1
    level.function, level.name, level.node = function, function.name, node
    return Spot(level)


def idle(function: Function, calls: Tuple[str, ...], lines: Set[int]) -> List[Words]:
    """Of a function, calls of these at other lines: where nothing of the inputs came."""
    out = []
    for nodes in list(function.by_line.values()):
        for node in nodes:
            name = getattr(getattr(node, "func", None), "attr", "")
            if isinstance(node, ast.Call) and name in calls and node.lineno not in lines:
                out.append(_bare(function, node).words(""))
    return out


def unread(function: Function) -> List[Words]:
    """Assignments of a function to variables that it never reads."""
    read = set(_names(function.node))
    return [_bare(function, node).words("") for nodes in list(function.by_line.values()) for node in nodes
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id not in read]


def _assigns(node: ast.AST) -> Set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def unchanged_remarks(function: Function) -> List[Tuple[Words, str]]:
    """Variables with which a maximum or a sum begins, -inf or 0, of which a loop computes and which it never changes: told
    at its last line."""
    out: List[Tuple[Words, str]] = []
    for loop in (n for nodes in list(function.by_line.values()) for n in nodes if isinstance(n, (ast.For, ast.While))):
        computed = {side.id for n in ast.walk(loop) if isinstance(n, ast.BinOp) for side in (n.left, n.right)
                    if isinstance(side, ast.Name)}
        for name in sorted(computed - _assigns(loop)):
            given = [_constant(one.value) for one in function.assigned.get(name, []) if one.line < loop.lineno]
            last = [statement for statement in loop.body if not isinstance(statement, ast.Pass)][-1:]
            if last and len(given) == 1 and given[0] in (0.0, float("-inf")):
                out.append((_bare(function, last[0]).words(""), f"ends a step of a loop that never changes {name}, which is "
                                                                f"{given[0]:g} in all of them"))
    return out


def _constant_axis(call: ast.Call) -> Optional[int]:
    for argument in [*call.args, *(k.value for k in call.keywords)][:1]:
        if isinstance(argument, ast.Constant) and argument.value in (0, 1, 2):
            return int(argument.value)  # type: ignore[arg-type,unused-ignore]
    return None


def program_remarks(code: CodeType, programs: Tuple[int, ...]) -> List[Tuple[Words, str]]:
    """Of a kernel of which `programs` run along each index: which line takes the wrong one, where no line takes one of which
    there are several, so that all of these do the same."""
    source = _source(os.path.abspath(code.co_filename))
    pending = [source.function_of(code)]
    seen: Set[int] = set()
    taken: List[Tuple[int, Function, ast.Call]] = []
    while pending:
        function = pending.pop()
        if function is None or id(function) in seen:
            continue
        seen.add(id(function))
        for call in ast.walk(function.node):
            if not isinstance(call, ast.Call):
                continue
            if getattr(call.func, "attr", "") in ("program_id", "num_programs"):
                axis = _constant_axis(call)
                if axis is None:
                    return []
                if getattr(call.func, "attr", "") == "program_id":
                    taken.append((axis, function, call))
            pending += [f for (name, _), f in source.functions.items() if name == getattr(call.func, "id", None)]
    axes = [axis for axis, _, _ in taken]
    out = []
    for idle_axis in (i for i, count in enumerate(programs) if count > 1 and i not in axes):
        same = f"so that the {programs[idle_axis]} programs along index {idle_axis} do the same"
        alone = [(at, f"takes index {axis} of a program, of which there is one, {same}")
                 for at, (axis, _, _) in enumerate(taken) if programs[axis] == 1]
        # Of two that take one index, the one after whose change the indices would be in order comes first.
        twice = [(at, f"takes index {axis} of a program, as another line does, {same}") for at, (axis, _, _) in enumerate(taken)
                 if axes.count(axis) > 1]
        twice.sort(key=lambda one: axes[:one[0]] + [idle_axis] + axes[one[0] + 1:] != sorted(set(axes) | {idle_axis}))
        out += [(_bare(taken[at][1], taken[at][2]).words(""), text) for at, text in alone + twice]
    return out


class Places:
    """The place that is running now, up to call_of_kernel() or call_of_user()."""

    def __init__(self) -> None:
        self._spots: Dict[Tuple[Any, ...], Spot] = {}
        self._levels: Dict[Tuple[Any, ...], Level] = {}

    def now(self) -> Spot:
        frames: List[Tuple[CodeType, int]] = []
        in_kernel = False
        frame: Optional[FrameType] = sys._getframe(1)
        while frame is not None:
            code = frame.f_code
            if code.co_name in ("call_of_kernel", "call_of_user") and code.co_filename.startswith(_OURS):
                in_kernel = code.co_name == "call_of_kernel"
                break
            if is_users(code.co_filename):
                frames.append((code, frame.f_lasti))
            frame = frame.f_back
        key = tuple(frames)
        spot = self._spots.get(key)
        if spot is None:
            level: Optional[Level] = None
            for i in range(len(frames) - 1, -1, -1):
                above = key[i:]
                known = self._levels.get(above)
                if known is None:
                    known = self._levels[above] = Level(*frames[i], level)
                level = known
            spot = self._spots[key] = Spot(level or Level(sys._getframe(0).f_code, 0, None), in_kernel)
        return spot
