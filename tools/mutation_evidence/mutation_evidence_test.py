#!/usr/bin/env python3
"""tools/mutation-evidence: what its operators make of small sources, what they leave alone, and how answers are scored."""

import collections
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from mutation_evidence import ask, draw, kernels, operators, report, score  # noqa: E402
from mutation_evidence.source import Source, tokens_of  # noqa: E402

TOOL = HERE.parent / "mutation-evidence"


def load_tool():
    loader = importlib.machinery.SourceFileLoader("mutation_evidence_tool", str(TOOL))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("mutation_evidence_tool", loader))
    loader.exec_module(module)
    return module


tool = load_tool()


def in_kernel(body, before="", parameters="const float* q, float* o, int n, int m, float scale"):
    return Source(f"{before}\n__global__ void k({parameters}) {{\n{body}\n}}\n")


def edits(source, operator):
    """{(what is replaced, what stands there instead)} of an operator."""
    return {(source.text[site.start:site.end], instead) for site in operators.sites(source).get(operator, [])
            for instead in site.instead}


class Tokens(unittest.TestCase):
    def test_comments_strings_and_directives_are_one_token_each(self):
        text = ('#define MAX(a, b) \\\n  ((a) < (b))\n// a < b\n/* c < d\n */ x = "e < f" + R"--(g < ")--" + \'<\';\n'
                "int y = 0xffu + 1.5e-3f + 1'000;")
        kinds = [(t.kind, t.text) for t in tokens_of(text)]
        self.assertEqual([token for token in kinds if "<" in token[1]],
                         [("preprocessor", "#define MAX(a, b) \\\n  ((a) < (b))"), ("comment", "// a < b"),
                          ("comment", "/* c < d\n */"), ("string", '"e < f"'), ("string", 'R"--(g < ")--"'),
                          ("char", "'<'")])
        self.assertEqual([text for kind, text in kinds if kind == "number"], ["0xffu", "1.5e-3f", "1'000"])

    def test_a_directive_begins_a_line(self):
        self.assertEqual([t.kind for t in tokens_of("  #pragma unroll\nx # y")],
                         ["preprocessor", "name", "mark", "name"])


class DeviceCode(unittest.TestCase):
    def edited(self, text):
        source = Source(text)
        return {source.line_of(site.token) for sites in operators.sites(source).values() for site in sites}

    def test_only_bodies_of_device_functions_are_edited(self):
        text = """constexpr int kN = 4 * 2;
void host(int n) { if (n < 3) n = n + 1; }
__device__ int counter = 3 + 4;
__device__ int twice(int x = 1 + 1) {
  return x * 2;
}
struct S {
  int a = 5;
  __host__ __device__ int f() const { return a + 1; }
  int g() { return a + 1; }
};
template <int kD = 3 + 4>
__global__ void __launch_bounds__(kN * 32) k(const float* q, float* o) {
  __shared__ float tile[kN + 1][32];
  o[0] = q[1];
}
void launch() { k<<<dim3(3 + 4), 32>>>(nullptr, nullptr); auto f = [](int i) { return i + 1; }; }
auto on_device = [] __device__ (int i) { return i + 1; };
"""
        self.assertEqual(self.edited(text), {5, 9, 15, 18})

    def test_a_variable_of_the_device_makes_no_function_after_it_one(self):
        self.assertEqual(self.edited("""__device__ float table[4] = {1, 2, 3, 4};
int host(int n) { return n + 1; }
__device__ int declared(int n);
int other(int n) { return n + 1; }
"""), set())

    def test_comments_strings_directives_and_assembly_are_left_alone(self):
        body = """  // if (n < 3) o[0] = 1;
  /* n + 1 */
#pragma unroll 4
#define ADD(x) ((x) + 1)
  printf("%d < 3 + 4\\n");
  asm volatile("add %0, %1, 1;" : "=r"(n) : "r"(m + 1));"""
        source = in_kernel(body)
        found = {(name, source.line_of(site.token)) for name, sites in operators.sites(source).items() for site in sites}
        self.assertEqual(found, {("statement-deleted", 7), ("statement-deleted", 8)})

    def test_types_sizes_and_template_arguments_are_left_alone(self):
        source = in_kernel("""  float a[16 + 4], *p = reinterpret_cast<float*>(o);
  const auto x = load<4, 2 + 2>(p);
  std::array<float, 3> y;
  half2 *const z = static_cast<half2 *>(x);""")
        for name in ("arithmetic", "integer-constant", "relational", "factor-dropped"):
            self.assertEqual(edits(source, name), set(), name)

    def test_what_stands_behind_a_macro_for_device_is_device_code(self):
        text = "#define MY_DEVICE __device__ __forceinline__\nMY_DEVICE int f(int x) { return x + 1; }\n"
        self.assertEqual(kernels.device_macros({"a.h": text}), {"MY_DEVICE"})
        self.assertTrue(operators.sites(Source(text, {"MY_DEVICE"})))
        self.assertFalse(operators.sites(Source(text)))

    def test_every_kernel_of_the_zoo_is_read(self):
        for kernel in kernels.of_the_zoo():
            sources = kernels.parsed(kernel)
            texts = kernels.texts(kernel)
            functions = sum(t.text == "__global__" for text in texts.values() for t in tokens_of(text))
            found = sum(source.words.count("__global__") for source in sources.values())
            self.assertEqual(found, functions, kernel.name)
            ranges = sum(len(source.device_ranges) for source in sources.values())
            self.assertGreaterEqual(ranges, functions, kernel.name)
            for name, source in sources.items():
                self.assertNotIn("adapter", name)
                spans = [(source.tokens[a].start, source.tokens[b].end) for a, b in source.device_ranges]
                for sites in operators.sites(source).values():
                    for site in sites:
                        self.assertTrue(any(a < site.start and site.end < b for a, b in spans), (name, site))


class Operators(unittest.TestCase):
    def test_relational(self):
        source = in_kernel("  if (n < m && n != 3) o[n >> 1] = vec<3>(n) > 2 ? 1 : 2;")
        self.assertEqual(edits(source, "relational"), {("<", "<="), ("!=", "=="), (">", ">=")})
        self.assertEqual(len(operators.sites(source)["relational"]), 3)  # a shift is none

    def test_arithmetic_is_of_two_operands(self):
        source = in_kernel("  float x = -*q + (float)*o - (n % 2) / -m * scale; ++n;")
        self.assertEqual(edits(source, "arithmetic"), {("+", "-"), ("-", "+"), ("%", "/"), ("/", "*"), ("*", "+")})
        self.assertEqual(len(operators.sites(source)["arithmetic"]), 5)

    def test_integer_constants_by_one_and_by_two(self):
        source = in_kernel("  n = 16u + 0x0f; m = 0;")
        self.assertEqual(edits(source, "integer-constant"),
                         {("16u", "17u"), ("16u", "15u"), ("16u", "32u"), ("16u", "8u"), ("0", "1")})

    def test_float_constants(self):
        source = in_kernel("  scale = 0.f; o[n] = 1.5f - INFINITY; float x = -INFINITY;")
        self.assertEqual(edits(source, "float-constant"),
                         {("0.f", "1.f"), ("1.5f", "(2 * 1.5f)"), ("1.5f", "(-1.5f)"), ("- INFINITY", "INFINITY"),
                          ("- INFINITY", "-1.f"), ("-INFINITY", "INFINITY"), ("-INFINITY", "-1.f")})

    def test_index_variables_of_the_same_type_in_scope(self):
        source = in_kernel("""  { int gone = 1; }
  const int row = n; unsigned u = 0; float f = 0;
  o[row * 2] = q[u] + f * m;
  int later = 0;""")
        found = edits(source, "index-variable")
        self.assertEqual({e for e in found if e[0] == "row"}, {("row", "n"), ("row", "m")})
        self.assertFalse({e for e in found if e[0] in ("u", "f", "m")})
        self.assertEqual({e for e in found if e[0] == "n"}, {("n", "m")})

    def test_index_variables_in_a_lambda_are_those_of_both_scopes(self):
        source = in_kernel("  auto f = [&](int i) { o[i] = q[i + n]; };\n  f(3);")
        self.assertIn(("i", "m"), edits(source, "index-variable"))
        self.assertIn(("n", "i"), edits(source, "index-variable"))
        self.assertEqual(len(operators.sites(source)["index-variable"]), 3)

    def test_threads_and_blocks(self):
        self.assertEqual(edits(in_kernel("  o[threadIdx.x] = 1;"), "index-variable"), {("x", "y")})

    def test_index_offsets_only_in_indices(self):
        source = in_kernel("  for (int i = 0; i < n; ++i) o[i] = scale * m; const int r = m * kDim;",
                           before="constexpr int kDim = 32;")
        self.assertEqual(edits(source, "index-offset"), {("i", "(i + 1)"), ("i", "(i - 1)"), ("m", "(m + 1)"),
                                                         ("m", "(m - 1)")})

    def test_strides(self):
        source = in_kernel("  o[n * kDim + m * 8] = scale * 4;", before="constexpr int kDim = 32, kRows = 4;")
        self.assertEqual(edits(source, "stride"),
                         {("kDim", "(kDim + 1)"), ("kDim", "(kDim / 2)"), ("kDim", "(kDim * 2)"), ("kDim", "kRows"),
                          ("8", "16"), ("8", "4"), ("8", "9")})

    def test_lanes(self):
        source = in_kernel("  scale = __shfl_xor_sync(~0u, scale, 16); scale += warp.shfl(scale, n);")
        self.assertEqual(edits(source, "lane"),
                         {("__shfl_xor_sync", "__shfl_down_sync"), ("16", "8"), ("16", "17"), ("n", "(n + 1)"),
                          ("n", "(n ^ 1)"), ("n", "(n / 2)")})

    def test_mask_constants(self):
        source = in_kernel("  scale = __shfl_sync(0xffu, n < m ? scale : -INFINITY, n & 31);")
        self.assertEqual(edits(source, "mask-constant"),
                         {("0xffu", "0x7fu"), ("0xffu", "0xfeu"), ("0xffu", "0x1ffu"), ("31", "15"), ("31", "30"),
                          ("31", "63"), ("-INFINITY", "0.f")})

    def test_factors(self):
        source = in_kernel("  scale = scale * alpha(n) + q[m] / *o; o[n * m] = 1;")
        self.assertEqual(edits(source, "factor-dropped"),
                         {(" * alpha(n)", ""), ("scale * ", ""), (" / *o", "")})

    def test_compound_assignments_but_not_of_steps(self):
        source = in_kernel("  for (int i = 0; i < n; i += 2) scale += 1.f, o[i] *= scale;")
        self.assertEqual(edits(source, "compound-assignment"), {("+=", "="), ("*=", "=")})
        self.assertEqual(len(operators.sites(source)["compound-assignment"]), 2)

    def test_minimum_and_maximum(self):
        source = in_kernel("  scale = fmaxf(scale, std::min(n, m)); atomicMax(&n, 1); maximum = __hmax2(a, b);")
        self.assertEqual(edits(source, "min-max"), {("fmaxf", "fminf"), ("min", "max"), ("atomicMax", "atomicMin"),
                                                    ("__hmax2", "__hmin2")})

    def test_functions(self):
        source = in_kernel("  scale = __expf(scale - o[1]) + fmaxf(scale, o[n]) + f(1);")
        self.assertEqual(edits(source, "function-dropped"),
                         {("__expf(scale - o[1])", "(scale - o[1])"), ("fmaxf(scale, o[n])", "(scale)"),
                          ("fmaxf(scale, o[n])", "(o[n])")})

    def test_arguments(self):
        source = in_kernel("  f(n, g(m), 3); scale = fmaxf(scale, o[n]); same(n, n);")
        self.assertEqual(edits(source, "arguments-swapped"), {("n, g(m)", "g(m), n"), ("g(m), 3", "3, g(m)")})

    def test_guards(self):
        source = in_kernel("""  if (n >= m) return;
  if (n == 0) o[0] = 1;
  scale = n < m && (m > 2 || n) ? q[n] : 0.f;""")
        self.assertEqual(edits(source, "guard-dropped"),
                         {("n >= m", "false"), ("n == 0", "true"), ("n < m && (m > 2 || n)", "true"), ("n < m && ", ""),
                          (" && (m > 2 || n)", "")})
        self.assertEqual(edits(source, "condition-negated"),
                         {("n >= m", "!(n >= m)"), ("n == 0", "!(n == 0)"),
                          ("n < m && (m > 2 || n)", "!(n < m && (m > 2 || n))")})

    def test_bounds_of_loops(self):
        source = in_kernel("  for (int j = 0; j < 16 && n + j < m; ++j) o[j] = 0;")
        self.assertEqual(edits(source, "guard-dropped"), {("j < 16 && ", ""), (" && n + j < m", "")})

    def test_barriers_and_other_statements(self):
        source = in_kernel("""  __syncthreads();
  block.sync();
  ptx::cp_async_wait<0>();
  asm volatile("bar.sync 1, 64;");
  wmma::mma_sync(a, b, c, a);
  cuda::memcpy_async(block, s, g, 4, pipe);
  o[n] = 1;
  int x = 3;
  return;""")
        barriers = {text for text, _ in edits(source, "barrier-deleted")}
        self.assertEqual(barriers, {"__syncthreads();", "block.sync();", "ptx::cp_async_wait<0>();",
                                    'asm volatile("bar.sync 1, 64;");'})
        self.assertEqual({text for text, _ in edits(source, "statement-deleted")},
                         {"wmma::mma_sync(a, b, c, a);", "cuda::memcpy_async(block, s, g, 4, pipe);", "o[n] = 1;"})

    def test_a_statement_with_a_body_of_its_own_is_not_deleted_but_those_in_it_are(self):
        source = in_kernel("  each(n, [&](int i) { o[i] = 1; });")
        self.assertEqual(edits(source, "statement-deleted"), {("o[i] = 1;", ";")})

    def test_initialisers(self):
        source = in_kernel("""  float a[4] = {}, l = 0.f, b = -INFINITY;
  for (int i = 0; i < n; ++i) o[i] = a[i];
  const int j = n * 2;""")
        self.assertEqual(edits(source, "initialiser"),
                         {(" = {}", ""), ("0.f", "1.f"), ("-INFINITY", "0.f"), ("-INFINITY", "INFINITY"), ("0", "1"),
                          ("n * 2", "(n * 2) + 1"), ("n * 2", "(n * 2) - 1")})

    def test_every_operator_has_sites_in_the_zoo(self):
        found = collections.Counter()
        for kernel in kernels.of_the_zoo():
            for source in kernels.parsed(kernel).values():
                found.update({name: len(sites) for name, sites in operators.sites(source).items()})
        self.assertEqual(set(found), set(operators.OPERATORS))


class Places(unittest.TestCase):
    def mutants(self, body, operator):
        source = in_kernel(body)
        return [draw.mutate(source, "a.cu", "k", operator, site, site.instead[0], 0)
                for site in operators.sites(source)[operator]]

    def test_a_deleted_statement_begins_at_its_first_line_and_has_its_variable(self):
        found = self.mutants("""  shared.k[n][m] =
      q[n];
  *reinterpret_cast<float*>(o + n) = 1;
  mma_sync(acc[n], a, b, c);
  cuda::memcpy_async(block, tile[n], q, 4, pipe);""", "statement-deleted")
        self.assertEqual([(m.line, m.column, m.first_line, m.last_line, m.variable) for m in found],
                         [(3, 3, 3, 4, "shared.k"), (5, 3, 5, 5, "o"), (6, 3, 6, 6, "acc"), (7, 3, 7, 7, "tile")])
        self.assertIn("-  shared.k[n][m] =\n-      q[n];\n+  ;\n", found[0].diff)

    def test_lines_beside_what_was_deleted_are_those_of_code(self):
        body = "  for (int i = 0; i < n; ++i) {\n    o[i] = 1;\n  }\n  // waits\n  __syncthreads();\n\n  o[n] = 2;"
        (found,) = self.mutants(body, "barrier-deleted")
        self.assertEqual((found.line, found.beside), (7, (5, 9)))
        self.assertEqual({m.beside for m in self.mutants(body, "integer-constant")}, {()})

    def test_what_a_deletion_empties_belongs_to_the_gap(self):
        bodies = {"  o[0] = 1;\n  if (m) o[1] = 2;\n  o[2] = 3;": (3, 5),
                  "  o[0] = 1;\n  for (int i = f(n); i < m; ++i)\n    if constexpr (n > 1) o[i] = 2;\n  o[2] = 3;": (3, 6),
                  "  o[0] = 1;\n  if (m) { o[1] = 2; }\n  o[2] = 3;": (4, 4)}
        for body, lines in bodies.items():
            found = self.mutants(body, "statement-deleted")
            self.assertEqual(found[1].beside, lines, body)

    def test_an_edit_within_a_statement_of_many_lines_is_where_it_begins(self):
        body = "  const float a = 1.f,\n              b = scale /\n                  q[n];"
        (found,) = self.mutants(body, "factor-dropped")
        self.assertEqual((found.line, found.first_line, found.last_line, found.variable), (4, 3, 5, "b"))

    def test_a_guard_has_the_variable_of_the_one_statement_that_it_guards(self):
        (found,) = self.mutants("  if (n < m)\n    o[n] = 1;", "condition-negated")
        self.assertEqual((found.line, found.last_line, found.variable), (3, 3, "o"))


class Drawing(unittest.TestCase):
    SOURCE = """__global__ void k(const float* q, float* o, int n) {
  for (int i = 0; i < n; ++i) o[i] = q[i] * 2.f + 1.f;
  __syncthreads();
}
"""

    def drawn(self, seed, text=SOURCE, kernel="k"):
        return list(draw.draw(kernel, {"a.cu": Source(text)}, seed))

    def test_a_seed_gives_the_same_mutants(self):
        self.assertEqual(self.drawn("x"), self.drawn("x"))

    def test_another_seed_or_kernel_gives_others(self):
        first = [m.text for m in self.drawn("x")]
        self.assertNotEqual(first, [m.text for m in self.drawn("y")])
        self.assertNotEqual(first, [m.text for m in self.drawn("x", kernel="other")])

    def test_no_text_twice_and_none_is_the_right_one(self):
        texts = [m.text for m in self.drawn("x")]
        self.assertEqual(len(texts), len(set(texts)))
        self.assertNotIn(self.SOURCE, texts)

    def test_an_operator_with_many_sites_does_not_dominate(self):
        many = self.SOURCE.replace("  __sync", "  o[0] = 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1;\n  __sync")
        kinds = len(operators.sites(Source(many)))
        first = collections.Counter(self.drawn(str(seed), many)[0].operator for seed in range(400))
        self.assertEqual(len(first), kinds)
        self.assertLess(max(first.values()), 3 * 400 / kinds)

    def test_a_diff_makes_the_mutant(self):
        for mutant in self.drawn("x"):
            removed = [line[1:] for line in mutant.diff.splitlines()[2:] if line.startswith("-")]
            added = [line[1:] for line in mutant.diff.splitlines()[2:] if line.startswith("+")]
            left = collections.Counter(self.SOURCE.splitlines())
            left.subtract(removed)
            left.update(added)
            self.assertEqual(+left, collections.Counter(mutant.text.splitlines()), mutant.diff)


MUTANT = {"row": "mutant", "id": "k-000", "kernel": "k", "operator": "arithmetic", "file": "a.cu", "line": 11,
          "column": 3, "first_line": 10, "last_line": 12, "variable": "shared.acc", "diff": "-a\n+b\n", "outcome": "killed",
          "how": "diverges", "case": "--seqlen 40"}


def answered(answer, *suspects, exit=1, check=0, seconds=1.0, **more):
    suspects = [{"file": file, "line": line, "column": 1, "variable": variable, "text": ""}
                for file, line, variable in suspects]
    return {**MUTANT, "trace": {"exit": exit, "verdict": "", "seconds": seconds, "answer": answer, "reason": "",
                                "suspects": suspects},
            "check": {"verdict": "silent", "exit": check, "lines": []}, **more}


class Scoring(unittest.TestCase):
    def first(self, *suspect):
        return score.score(answered("line", suspect))["first"]

    def test_how_near_the_first_answer_is(self):
        self.assertEqual(self.first("a.cu", 11, "x"), "exact")
        self.assertEqual(self.first("sub/a.cu", 11, "x"), "exact")
        self.assertEqual(self.first("b.cu", 11, "x"), "other")
        self.assertEqual(self.first("a.cu", 10, "x"), "statement")
        self.assertEqual(self.first("a.cu", 12, None), "statement")
        self.assertEqual(self.first("a.cu", 40, "acc"), "variable")
        self.assertEqual(self.first("a.cu", 40, "acc[3]"), "variable")
        self.assertEqual(self.first("a.cu", 9, "x"), "near")
        self.assertEqual(self.first("a.cu", 13, "x"), "near")
        self.assertEqual(self.first("a.cu", 14, "x"), "other")
        self.assertEqual(self.first("a.cu", 8, "shared"), "other")

    def test_no_variable_is_no_variable(self):
        suspect = {"file": "a.cu", "line": 40, "variable": None}
        self.assertEqual(score.relation({**MUTANT, "variable": ""}, suspect), "other")

    def test_wrong_is_to_claim_another_line(self):
        other, exact = ("a.cu", 40, "x"), ("a.cu", 11, "x")
        self.assertTrue(score.score(answered("line", other, exact))["wrong"])
        self.assertTrue(score.score(answered("line"))["wrong"])
        self.assertFalse(score.score(answered("unsure", other))["wrong"])
        self.assertFalse(score.score(answered("line", exact, other))["wrong"])
        self.assertFalse(score.score(answered("none"))["wrong"])

    def test_the_rank_of_the_exact_line(self):
        other, exact = ("a.cu", 40, "x"), ("a.cu", 11, "x")
        self.assertEqual(score.score(answered("unsure", other, other, exact))["rank"], 3)
        self.assertIsNone(score.score(answered("line", other))["rank"])

    def test_detected_by_trace_or_by_check(self):
        self.assertTrue(score.score(answered("none", exit=1))["detected"])
        self.assertTrue(score.score(answered("none", exit=None))["detected"])
        self.assertTrue(score.score(answered("none", exit=0, check=1))["detected"])
        self.assertFalse(score.score(answered("none", exit=0, check=0))["detected"])

    def test_what_was_deleted_has_no_line_but_two_beside_it(self):
        mutant = answered("unsure", ("a.cu", 40, "x"), ("a.cu", 8, "x"))
        self.assertIsNone(score.score(mutant)["told"])
        mutant["beside"] = (8, 14)
        self.assertEqual((score.score(mutant)["told"], score.score(mutant)["rank"]), (2, None))
        self.assertEqual(score.score({**answered("unsure", ("a.cu", 14, "x")), "beside": (8, 14)})["first"], "gap")
        self.assertEqual(score.score({**answered("unsure", ("a.cu", 15, "x")), "beside": (8, 14)})["first"], "other")

    def test_without_suspects_the_place_is_that_of_the_error_or_else_of_check(self):
        mutant = answered("not_looked")
        mutant["trace"].update(verdict="crashes", error_lines=[["a.cu", 40], ["a.cu", 11]])
        self.assertEqual(score.score(mutant)["told"], 2)
        mutant = answered("not_looked")
        mutant["check"]["lines"] = [["a.cu", 11]]
        self.assertIsNone(score.score(mutant)["told"])  # trace has a verdict of its own
        mutant["trace"]["verdict"] = "agrees"
        self.assertEqual(score.score(mutant)["told"], 1)

    def test_counts(self):
        other, exact, near = ("a.cu", 40, "x"), ("a.cu", 11, "x"), ("a.cu", 13, "x")
        mutants = [answered("line", exact), answered("unsure", exact), answered("line", other, other, exact),
                   answered("unsure", other, other, other, exact), answered("line", near), answered("none"),
                   answered("not_looked", exact), {**MUTANT, "outcome": "agrees"},
                   {**MUTANT, "outcome": "does not compile"}]
        counts = score.tally(mutants)
        expected = {"drawn": 9, "does_not_compile": 1, "agrees": 1, "killed": 7, "asked": 7, "detected": 7,
                    "exact_first": 2, "claimed_exact": 1, "exact_in_three": 3,
                    "place_first": 2, "place_in_three": 3, "same_statement_or_variable": 2,
                    "within_one_line": 3, "claimed": 3, "wrong": 1, "unsure": 2, "no_line": 1, "not_looked": 1,
                    "check_has_line": 0, "error_has_line": 0}
        self.assertEqual(counts, expected)

    def test_what_tried_edits_change(self):
        def traced(*suspects, found):
            return {**answered("unsure", *suspects)["trace"], "edits": {"found": found, "seconds": 3, "tried": 7}}
        alone = ("a.cu", 40, "y"), ("a.cu", 11, "x")
        better = answered("unsure", *alone, edits=traced(*reversed(alone), found=True))
        same = answered("unsure", *alone, edits=traced(*alone, found=False))
        scores = score.score(better)
        self.assertEqual((scores["rank"], scores["with_edits"]["rank"], scores["repaired"]), (2, 1, True))
        counts = score.tally([better, same, answered("unsure", *alone)])
        self.assertEqual([counts[key] for key in ("edits_asked", "repaired", "exact_first_alone", "exact_first_with_edits",
                                                  "exact_in_three_with_edits")], [2, 1, 0, 1, 2])
        gone = [{**mutant, "line": 12, "first_line": 12, "last_line": 12, "beside": (11, 13)} for mutant in (better, same)]
        counts = score.tally(gone)
        self.assertEqual([counts[key] for key in ("exact_first_with_edits", "place_first_alone", "place_first_with_edits",
                                                  "place_in_three_with_edits")], [0, 0, 1, 2])

    def test_lines_that_check_and_errors_name(self):
        scores = score.score(answered("none"))
        self.assertEqual((scores["check_has_line"], scores["error_has_line"]), (False, False))
        mutant = answered("none")
        mutant["check"]["lines"] = [["b.cu", 11], ["a.cu", 11]]
        mutant["trace"]["error_lines"] = [["a.cu", 11]]
        scores = score.score(mutant)
        self.assertEqual((scores["check_has_line"], scores["error_has_line"]), (True, True))

    def test_seconds(self):
        mutants = [answered("none", seconds=s) for s in (5, 1, 2, 3, 4, 6, 7, 8, 9, 10)]
        self.assertEqual(score.seconds(mutants), {"median": 5.5, "nine_in_ten": 9, "most": 10})

    def test_right_kernels(self):
        rows = [{"random": True, "trace": {"answer": "line", "verdict": "agrees"}},
                {"random": False, "trace": {"answer": "none", "verdict": "agrees"}},
                {"random": True, "trace": {"answer": "unsure", "verdict": "diverges"}}]
        counts = score.controls(rows)
        self.assertEqual((counts["cases"], counts["random"], counts["false_lines"], counts["does_not_agree"]), (3, 2, 1, 1))


class Reading(unittest.TestCase):
    def test_an_error_has_places_and_no_addresses(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "a.cu").touch()
            said = ask.error_of(f"attn-diag: step 1 of 5\nattn-diag: error: at 0x7f01 of {folder}/a.cu:7.\n"
                                f"  called by {folder}/a.cu:9 and /usr/include/x.h:3\nelsewhere a.cu:11\n", folder)
        self.assertEqual(said, {"error": "at 0x... of a.cu:7.", "error_lines": [["a.cu", 7], ["a.cu", 9]]})
        self.assertEqual(ask.error_of("attn-diag: step 1 of 5\n", folder), {})

    def test_verdicts(self):
        for code, said, err, expected in [
                (0, {}, "", "agrees"), (1, {}, "", "diverges"), (1, {"verdict": "latent"}, "", "latent"),
                (None, {}, "", "does not end"), (2, {"error": {"kind": "timeout"}}, "", "does not end"),
                (2, {}, "the block has not ended after 9 steps", "does not end"),
                (2, {"error": {"kind": "signal"}}, "", "crashes"), (2, {}, "x wrote outside o", "writes outside"),
                (2, {}, "x does not support this", "unsupported"), (2, {}, "misaligned", "does not run"),
                (3, {}, "", "internal error")]:
            self.assertEqual(ask.verdict(code, said, err), expected)


class Cases(unittest.TestCase):
    def test_lists_are_cases_but_not_windows(self):
        self.assertEqual(kernels.single_cases("--seqlen 40 --head-dim 32,64 --mask window:20,3"),
                         ["--seqlen 40 --head-dim 32 --mask window:20,3", "--seqlen 40 --head-dim 64 --mask window:20,3"])

    def test_the_smallest_comes_first(self):
        kernel = kernels.zoo.Kernel("k", HERE, [], ["--seqlen 40", "--seqlen-q 3 --seqlen-k 33 --batch 2"], [])
        self.assertEqual(kernels.own_cases(kernel)[0], "--seqlen-q 3 --seqlen-k 33 --batch 2")


# Stands in for attn-diag: it reads the source beside x.so, and knows what the right one is.
STAND_IN = r'''#!/usr/bin/env -S python3 -SE
import json, os, pathlib, sys
words = sys.argv[1:]
log = pathlib.Path(os.environ["ASKED"])
if words[0] in ("build", "run", "check", "trace", "diagnose"):
    mutant = pathlib.Path("mutant")
    with log.open("a") as file:
        file.write(words[0] + " " + (mutant.read_text().strip() if mutant.exists() else pathlib.Path.cwd().name) + "\n")
if words[0] == "--version":
    print("attn-diag 9.9")
elif words[0] == "--help":
    print("Subcommands:\n  build   x\n  trace   y")
else:
    text = pathlib.Path("a.cu").read_text().splitlines()
    right = pathlib.Path(os.environ["RIGHT"]).read_text().splitlines()
    wrong = [i for i, (a, b) in enumerate(zip(text, right), 1) if a != b]
    line = wrong[0] if wrong else 0
    if words[0] == "build":
        if line == 2:
            sys.exit("a.cu:2: error: no")
        pathlib.Path("x.so").touch()
    elif words[0] == "run":
        if "40" not in words:
            sys.exit("attn-diag: error: does not support this problem")
        if line == 3:
            print(json.dumps({"verdict": "diverges"}))
            sys.exit(1)
    elif words[0] == "check":
        print(json.dumps({"findings": [{"kind": "race", "access": {"places": [{"file": os.getcwd() + "/a.cu", "line": 4}]},
                                        "other": None}] if line == 4 else []}))
        sys.exit(line == 4)
    elif words[0] == "trace":
        edits = {"diff": "", "operator": "", "tried": 3, "seconds": 1} if "--try-edits" in words else None
        part = {"answer": "line", "reason": "in " + os.getcwd() + "/a.cu", "edits": edits, "suspects": [
            {"file": os.getcwd() + "/a.cu", "line": line, "column": 1, "variable": "o", "text": text[line - 1]}]}
        print(json.dumps({"line_divergence": part if line else {"answer": "none", "reason": "", "suspects": []}}))
        sys.exit(1 if line else 0)
    elif words[0] == "diagnose":
        print(json.dumps({"diagnosis_verdict": "unknown", "diagnosis": []}))
        sys.exit(1)
'''
KERNEL = """__global__ void k(const float* q, float* o, int n) {
  const int broken = n + 1;
  o[n] = q[n] + 1.f;
  __syncthreads();
  const int harmless = n * 2;
}
"""


class Gathering(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="mutation-test-"))
        self.addCleanup(shutil.rmtree, self.folder)
        stand_in = self.folder / "attn-diag"
        stand_in.write_text(STAND_IN)
        stand_in.chmod(0o755)
        kernel = self.folder / "brought"
        kernel.mkdir()
        (kernel / "a.cu").write_text(KERNEL)
        (kernel / "adapter.cu").write_text("__device__ int adapter(int n) { return n + 1; }\n")
        (kernel / "expect.toml").write_text("sources = ['a.cu', 'adapter.cu']\ncases = ['--seqlen 40']\n")
        (self.folder / "right.cu").write_text(KERNEL)
        self.asked = self.folder / "asked"
        environment = {"ASKED": str(self.asked), "RIGHT": str(self.folder / "right.cu")}
        os.environ.update(environment)

    def call(self, *arguments, out="out"):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            code = tool.main(["--kernel-dir", str(self.folder / "brought"), "--only", "brought", "--seed", "s",
                              "--attn-diag", str(self.folder / "attn-diag"), "--out", str(self.folder / out), *arguments])
        return code, said.getvalue()

    def report(self, out="out"):
        return json.loads((self.folder / out / "mutation.json").read_text())

    def test_mutants_are_dropped_killed_and_scored(self):
        code, said = self.call("--per-kernel", "6")
        self.assertEqual(code, 0)
        found = self.report()
        outcomes = {row["line"]: row["outcome"] for row in found["rows"]}
        self.assertEqual(outcomes.get(2, "does not compile"), "does not compile")
        self.assertEqual((outcomes[3], outcomes[4], outcomes[5]), ("killed", "killed", "agrees"))
        how = {row["line"]: row.get("how") for row in found["rows"]}
        self.assertEqual((how[3], how[4]), ("diverges", "check"))
        self.assertEqual({row["file"] for row in found["rows"]}, {"a.cu"})
        overall = found["overall"]
        self.assertEqual((overall["killed"], overall["detected"], overall["exact_first"], overall["wrong"]), (6, 6, 6, 0))
        self.assertEqual(overall["drawn"], overall["killed"] + overall["agrees"] + overall["does_not_compile"])
        self.assertIn("[6/6", said)

    def test_results_have_no_paths_of_the_machine(self):
        self.call("--per-kernel", "4", "--controls", "2")
        for name in ("mutants.jsonl", "mutation.json", "mutation.md"):
            text = (self.folder / "out" / name).read_text()
            self.assertNotIn(str(self.folder), text, name)
            self.assertNotIn(str(kernels.ROOT), text, name)

    def test_a_second_call_repeats_nothing_and_gives_the_same(self):
        self.call("--per-kernel", "6")
        before, asked = self.report(), self.asked.read_text()
        self.call("--per-kernel", "6")
        self.assertEqual(self.report(), before)
        self.assertEqual([line for line in self.asked.read_text()[len(asked):].splitlines() if "brought-" in line], [])

    def test_a_call_that_was_stopped_is_gone_on_with(self):
        self.call("--per-kernel", "6")
        whole = self.report()["rows"]
        rows = self.folder / "out" / "mutants.jsonl"
        lines = rows.read_text().splitlines(True)
        rows.write_text("".join(lines[:6]) + lines[6][:40])  # it was writing its seventh
        kept = {json.loads(line).get("id") for line in lines[:6]}
        self.asked.write_text("")
        self.call("--per-kernel", "6")
        again = {line.split()[1] for line in self.asked.read_text().splitlines()}
        self.assertFalse(again & (kept - {None}))

        calls = [line for line in rows.read_text().splitlines() if line.startswith('{"row": "call"')]
        self.assertEqual(len(calls), 2)

        def without_times(rows):
            return json.loads(json.dumps(rows), object_hook=lambda x: {k: v for k, v in x.items() if k != "seconds"})
        self.assertEqual(without_times(self.report()["rows"]), without_times(whole))

    def test_another_seed_is_refused_in_the_same_folder(self):
        self.call("--per-kernel", "1")
        with self.assertRaisesRegex(SystemExit, "go on with --seed s"):
            self.call("--per-kernel", "1", "--seed", "t")

    def test_a_kernel_that_has_changed_is_refused(self):
        self.call("--per-kernel", "1")
        (self.folder / "brought" / "a.cu").write_text(KERNEL + "\n")
        with self.assertRaisesRegex(SystemExit, "is no longer what"):
            self.call("--per-kernel", "2")

    def test_what_was_not_asked_is_asked_later_and_again_when_told(self):
        self.call("--per-kernel", "2", "--no-ask")
        self.assertEqual(self.report()["overall"]["asked"], 0)
        self.call("--per-kernel", "2", "--no-diagnose")
        self.assertEqual(self.report()["overall"]["asked"], 2)
        self.asked.write_text("")
        self.call("--per-kernel", "2", "--no-diagnose", "--again", "trace")
        commands = collections.Counter(line.split()[0] for line in self.asked.read_text().splitlines() if "brought-" in line)
        self.assertEqual(commands, {"build": 2, "trace": 2})
        self.assertEqual(self.report()["overall"]["drawn"], len({row["id"] for row in self.report()["rows"]}))

    def test_edits_are_tried_beside_the_trace_without(self):
        self.call("--per-kernel", "1", "--no-diagnose", "--try-edits", "5")
        overall = self.report()["overall"]
        self.assertEqual((overall["edits_asked"], overall["repaired"], overall["exact_first_with_edits"]), (1, 0, 1))
        text = (self.folder / "out" / "mutation.md").read_text()
        self.assertIn("| with `--try-edits`: an edit is found | 0 of 1 | 0.0 % |", text)
        self.assertIn("| repaired | 0.0 % | >= 60 % | **missed** |", text)

    def test_right_kernels_are_traced_on_their_cases_and_on_random_ones(self):
        self.call("--per-kernel", "1", "--controls", "3")
        found = self.report()["controls"]
        self.assertEqual((found["random"], found["false_lines"], found["answers"]), (3, 0, {"none": found["cases"]}))
        self.assertGreater(found["cases"], 3)
        self.asked.write_text("")
        self.call("--per-kernel", "1", "--controls", "3")
        self.assertNotIn("trace", self.asked.read_text())

    def test_kept_folders_have_the_mutant(self):
        self.call("--per-kernel", "2", "--keep")
        for row in self.report()["rows"]:
            folder = self.folder / "out" / "work" / row["id"]
            self.assertEqual(folder.exists(), row["outcome"] == "killed")
            if folder.exists():
                self.assertNotEqual((folder / "a.cu").read_text(), KERNEL)
                self.assertEqual(json.loads((folder / "mutant.json").read_text())["line"], row["line"])

    def test_scores_can_be_made_again(self):
        self.call("--per-kernel", "2")
        before = self.report()
        (self.folder / "out" / "mutation.json").unlink()
        self.call("--score-only")
        self.assertEqual(self.report(), before)

    def test_one_mutant_can_be_made_again_and_looked_at(self):
        self.call("--per-kernel", "2")
        row = next(row for row in self.report()["rows"] if row["outcome"] == "killed")
        with contextlib.redirect_stdout(io.StringIO()) as out:
            _, said = self.call("--mutant", row["id"])
        self.assertEqual(json.loads(out.getvalue())["diff"], row["diff"])
        self.assertIn(row["diff"], said)
        self.assertTrue((self.folder / "out" / "work" / row["id"] / "x.so").exists())

    def test_targets(self):
        rows = [{"row": "settings", "seed": "s", "commit": "c", "attn_diag": "9"},
                *({**answered("line", ("a.cu", 11 if i < 300 else 40, "x")), "id": f"k-{i:03}"} for i in range(310))]
        text = report.markdown(*report.summary_of(rows))
        self.assertIn("| killed mutants | 310 | >= 300 | met |", text)
        self.assertIn("| the exact line is the first answer | 96.8 % | >= 70 % | met |", text)
        self.assertIn("| wrong without saying that it is unsure | 3.2 % | <= 2 % | **missed** |", text)
        self.assertIn("| repaired | - | >= 60 % | not measured |", text)

    def test_the_wrong_ones_are_listed_with_their_diff(self):
        rows = [{"row": "settings", "seed": "s", "commit": "c", "attn_diag": "9"}, {"row": "call", "command": "x"},
                answered("line", ("a.cu", 40, "x")), {**answered("unsure", ("a.cu", 41, "y")), "id": "k-001"},
                {**answered("line", ("a.cu", 11, "x")), "id": "k-002"}]
        text = report.markdown(*report.summary_of(rows))
        wrong, _, unsure = text.partition("## Wrong")[2].partition("## Unsure, and another line first")
        self.assertIn("`k-000`", wrong)
        self.assertIn("Said: a.cu:40 x", wrong)
        self.assertIn("```diff\n-a\n+b\n```", wrong)
        self.assertIn("`k-001`", unsure)
        self.assertNotIn("`k-002`", text)


if __name__ == "__main__":
    unittest.main()
