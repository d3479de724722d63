#!/usr/bin/env python3
"""attn-diag repair as it is called: what it finds, what it leaves alone and what it refuses.

usage: repair_cli_test.py PATH_TO_ATTN_DIAG [--list | --only TITLE | --short | unittest arguments]
"""

import json
import pathlib
import shutil
import subprocess
import sys

from testing.command_test import CommandTest, long, main, paths

ZOO = pathlib.Path(__file__).resolve().parents[2] / "fixtures" / "zoo"
CASE = "--dtype fp32 --heads 2 --seqlen 9 --head-dim 16"

KERNEL = """\
#include <cuda_runtime.h>
#include "tile.cuh"

__global__ void rows(const float* q, const float* k, const float* v, float* o, float* lse, int n, int dim,
                     float scale) {
  __shared__ float s[64];
  const int row = blockIdx.x, at = blockIdx.y * n * dim;
  float m = -INFINITY, l = 0.0f;
  for (int first = 0; first < n; first += kTile) {
    const int keys = tile_end(first, n) - first;
    for (int j = threadIdx.x; j < keys; j += 32) s[j] = dot(q + at + row * dim, k + at + (first + j) * dim, dim) * scale;
    __syncthreads();
    float m_new = m;
    for (int j = 0; j < keys; ++j) m_new = fmaxf(m_new, s[j]);
    const float alpha = __expf(m - m_new);
    l *= alpha;
    for (int j = 0; j < keys; ++j) l += __expf(s[j] - m_new);
    for (int d = threadIdx.x; d < dim; d += 32) {
      float sum = first == 0 ? 0.0f : o[at + row * dim + d] * alpha;
      for (int j = 0; j < keys; ++j) sum += __expf(s[j] - m_new) * v[at + (first + j) * dim + d];
      o[at + row * dim + d] = sum;
    }
    m = m_new;
    __syncthreads();
  }
  for (int d = threadIdx.x; d < dim; d += 32) o[at + row * dim + d] /= l;
  if (threadIdx.x == 0) lse[blockIdx.y * n + row] = m + logf(l);
}

void attend(const float* q, const float* k, const float* v, float* o, float* lse, int heads, int n, int dim,
            float scale, cudaStream_t stream) {
  rows<<<dim3(n, heads), 32, 0, stream>>>(q, k, v, o, lse, n, dim, scale);
}

#include <attn_diag/kernels/bring.h>
static void call(const attn_diag::Call& c) {
  attend(c.q<float>(), c.k<float>(), c.v<float>(), c.o<float>(), c.lse(), c.batch() * c.heads(), c.seqlen(),
         c.head_dim(), c.scale(), c.stream());
}
ATTN_DIAG_EXPORT({.name = "rows", .call = call, .dtypes = fp32, .max_head_dim = 32, .tile = {1, 4}});
"""

HEADER = """\
#pragma once
constexpr int kTile = 4;
__device__ inline int tile_end(int first, int n) { return min(first + kTile, n); }
__device__ inline float dot(const float* a, const float* b, int dim) {
  float sum = 0.0f;
  for (int d = 0; d < dim; ++d) sum += a[d] * b[d];
  return sum;
}
"""


class Repair(CommandTest):
    def write(self, kernel=KERNEL, header=HEADER):
        (self.folder / "include").mkdir(exist_ok=True)
        (self.folder / "rows.cu").write_text(kernel)
        (self.folder / "include/tile.cuh").write_text(header)

    def build(self, kernel=KERNEL, header=HEADER, flags=""):
        self.write(kernel, header)
        self.call(f"build rows.cu -o rows.so -I include --no-nvcc {flags}", 0)

    def broken(self, old, new, flags=""):
        """Builds the kernel with a bug in its source or its header."""
        self.assertIn(old, KERNEL + HEADER)
        self.build(KERNEL.replace(old, new, 1), HEADER.replace(old, new, 1), flags)

    def report(self, code, flags=""):
        patience = "" if "--time-limit" in flags else "--time-limit 500"  # of a busy machine
        return json.loads(self.call(f"repair --kernel ./rows.so {CASE} --json {patience} {flags}", code))

    def test_the_smallest_edit_is_found_and_the_file_is_only_written_when_told(self):
        self.broken("j < keys; ++j) l +=", "j <= keys; ++j) l +=")
        before = (self.folder / "rows.cu").read_text()
        report = self.report(0, "--line rows.cu:17")
        self.assertTrue(report["found"])
        edit = report["edits"][0]
        self.assertEqual((edit["line"], edit["operator"], edit["built"]), (17, "relational operator", True))
        self.assertEqual(pathlib.Path(edit["file"]).resolve(), (self.folder / "rows.cu").resolve())
        self.assertIn("-    for (int j = 0; j <= keys; ++j) l +=", edit["diff"])
        self.assertIn("+    for (int j = 0; j < keys; ++j) l +=", edit["diff"])
        self.assertIn("H=2 S=9 D=16 fp32, check", report["cases"])
        self.assertIn("elements are wrong", report["failing_how"])
        self.assertGreater(report["tried"], 0)
        self.assertEqual((self.folder / "rows.cu").read_text(), before)
        # The diff is one.
        subprocess.run(["patch", "-p1", "--dry-run"], cwd=self.folder, input=edit["diff"], text=True, check=True,
                       stdout=subprocess.PIPE)
        text = self.call(f"repair --kernel ./rows.so {CASE} --line rows.cu:17 --apply", 0)
        self.assertTrue(text.startswith("REPAIRED: under an edit of rows.cu:17 (relational operator)"), text)
        self.assertIn("The edit was put into", text)
        self.assertEqual((self.folder / "rows.cu").read_text(), KERNEL)
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()),
                         ["include", "rows.cu", "rows.lockstep.so", "rows.so"])

    @long
    def test_a_bug_in_a_header_is_repaired_there(self):
        self.broken("sum += a[d] * b[d]", "sum = a[d] * b[d]")
        edit = self.report(0, "--line tile.cuh:6")["edits"][0]
        self.assertTrue(edit["file"].endswith("include/tile.cuh"), edit)
        self.assertIn("+  for (int d = 0; d < dim; ++d) sum += a[d] * b[d];", edit["diff"])

    @long
    def test_what_the_compiler_must_know_is_edited_too(self):
        # More scores than there is room for.
        self.broken("__shared__ float s[64];", "__shared__ float s[2];")
        edit = self.report(0, "--line rows.cu:6")["edits"][0]
        self.assertIn("+  __shared__ float s[4];", edit["diff"])

    @long
    def test_a_launch_is_edited_too(self):
        self.broken("dim3(n, heads)", "dim3(n, heads - 1)")
        edit = self.report(0)["edits"][0]
        self.assertIn("+  rows<<<dim3(n, heads), 32", edit["diff"])

    def build_with_two_bugs(self, old, new):
        """One that every case shows, and one that shows with three heads."""
        self.assertIn(old, KERNEL)
        self.build(KERNEL.replace(old, new, 1).replace("blockIdx.y * n * dim", "(blockIdx.y & 1) * n * dim"))

    @long
    def test_an_edit_that_mends_this_case_but_not_others_is_told_as_that(self):
        self.build_with_two_bugs("j < keys; ++j) l +=", "j <= keys; ++j) l +=")
        flags = "--time-limit 14 --line rows.cu:17"
        report = self.report(1, flags)
        self.assertFalse(report["found"])
        best = report["helpful"][0]
        self.assertEqual((best["line"], best["left"]), (17, 0))
        self.assertGreater(best["agreed"], 10)
        self.assertLess(best["agreed"], best["cases"])
        self.assertIn("B=2", best["but"])
        self.assertIn("+    for (int j = 0; j < keys; ++j) l +=", best["diff"])
        text = self.call(f"repair --kernel ./rows.so {CASE} {flags} --apply", 1)
        self.assertTrue(text.startswith("FOR THIS CASE: under an edit of rows.cu:17 it agrees, but "), text)
        self.assertIn("+    for (int j = 0; j < keys; ++j) l +=", text)
        self.assertIn("Nothing was written", text)
        self.assertIn("j <= keys; ++j) l +=", (self.folder / "rows.cu").read_text())

    @staticmethod
    def with_instances():
        """A kernel of which one instance is for the causal mask and one for none."""
        kernel = KERNEL
        for old, new in (("__global__ void rows(", "template <bool kCausal> __global__ void rows("),
                         ("* n * dim;", "* n * dim, end = kCausal ? row + 1 : n;"),
                         ("first < n;", "first < end;"),
                         ("tile_end(first, n)", "tile_end(first, end)"),
                         ("float scale, cudaStream_t stream)", "float scale, bool causal, cudaStream_t stream)"),
                         ("  rows<<<dim3(n, heads), 32, 0, stream>>>(q, k, v, o, lse, n, dim, scale);",
                          "  if (causal) rows<true><<<dim3(n, heads), 32, 0, stream>>>(q, k, v, o, lse, n, dim, scale);\n"
                          "  else rows<false><<<dim3(n, heads), 32, 0, stream>>>(q, k, v, o, lse, n, dim, scale);"),
                         ("c.scale(), c.stream()", "c.scale(), c.is_causal(), c.stream()"),
                         (".max_head_dim = 32,", ".max_head_dim = 32, .masks = none | causal,")):
            assert old in kernel, old
            kernel = kernel.replace(old, new, 1)
        return kernel.replace("j < keys; ++j) l +=", "j <= keys; ++j) l +=")

    @long
    def test_an_edit_is_held_to_the_instances_that_the_case_does_not_launch(self):
        self.build(self.with_instances())
        for command in ("repair", "trace --no-history --try-edits 500"):
            report = json.loads(self.call(f"{command} --kernel ./rows.so {CASE} --json", 0 if command == "repair" else 1))
            edit = report["edits"][0] if command == "repair" else report["line_divergence"]["edits"]
            self.assertIn("+    for (int j = 0; j < keys; ++j) l +=", edit["diff"])
            cases = report["cases"] if command == "repair" else edit["cases"]
            self.assertTrue([case for case in cases if "causal" in case], cases)

    @long
    def test_an_edit_that_another_instance_does_not_agree_with_is_no_repair(self):
        self.build(self.with_instances().replace("kCausal ? row + 1", "kCausal ? row + 2"))
        report = json.loads(self.call(f"trace --kernel ./rows.so {CASE} --no-history --try-edits 14 --json", 1))
        lines = report["line_divergence"]
        self.assertEqual(lines["edits"]["diff"], "", lines["edits"])
        report = self.report(1, "--time-limit 14 --line rows.cu:17")
        self.assertIn("causal", report["helpful"][0]["but"], report["helpful"])

    @long
    def test_what_only_check_sees_is_repaired_by_what_check_says(self):
        # It reads one number too many, which changes nothing.
        more = "float least = -INFINITY;\n  for (int d = 0; d < dim; ++d) least = fminf(least, a[d]);\n  return least > 1e30f ? least : sum;"
        header = HEADER.replace("return sum;", more)
        self.build(header=header.replace("d < dim; ++d) least", "d <= dim; ++d) least"))
        report = self.report(0)
        self.assertIn("check", report["failing"])
        self.assertIn("check finds", report["failing_how"])
        self.assertIn(8, [place["line"] for place in report["suspects"]])
        self.assertIn("+  for (int d = 0; d < dim; ++d) least", report["edits"][0]["diff"])

    @long
    def test_a_missing_barrier_is_put_back(self):
        self.broken("    m = m_new;\n    __syncthreads();\n", "    m = m_new;\n")
        self.assertIn("+    __syncthreads();", self.report(0, "--line rows.cu:24")["edits"][0]["diff"])

    @long
    def test_blocks_that_wait_for_others_do_so_where_edits_are_tried(self):
        # Behind launches in the process that forks; to drop the "return;" would be smaller.
        for name in ("adapter.cu", "splitk_flags.cu"):
            shutil.copy(ZOO / "cuda_atomic_flags" / name, self.folder)
        kernel = self.folder / "splitk_flags.cu"
        barrier = "    }\n  __syncthreads();\n"
        self.assertIn(barrier, kernel.read_text())
        kernel.write_text(kernel.read_text().replace(barrier, "    }\n", 1))
        self.call("build adapter.cu splitk_flags.cu -o flags.so --no-nvcc", 0)
        case = "--dtype fp32 --heads 1 --seqlen 17 --head-dim 32"
        lines = json.loads(self.call(f"trace --kernel ./flags.so {case} --no-history --json --try-edits 200", 1))["line_divergence"]
        self.assertEqual(lines["edits"]["operator"], "barrier")
        self.assertIn("+  __syncthreads();", lines["edits"]["diff"])

    @long
    def test_without_a_line_it_looks_for_suspects_itself(self):
        self.broken("l += __expf(s[j] - m_new)", "l += __expf(s[j] + m_new)")
        report = self.report(0)
        self.assertIn(17, [place["line"] for place in report["suspects"]])
        self.assertEqual(report["edits"][0]["line"], 17)
        self.assertIn("+    for (int j = 0; j < keys; ++j) l += __expf(s[j] - m_new);", report["edits"][0]["diff"])

    @long
    def test_an_edit_that_works_only_for_small_scores_is_none(self):
        # Without the maximum, or with a constant for it, small scores are right, too.
        self.broken("l *= alpha", "l *= 1.0f")
        report = self.report(0, "--line rows.cu:16")
        self.assertIn("H=2 S=9 D=16 fp32, scores up to hundreds", report["cases"])
        self.assertNotIn("fmaxf", report["edits"][0]["diff"].replace("m_new = fmaxf(m_new, s[j])", ""))
        self.assertIn("alpha", report["edits"][0]["diff"].split("\n+")[-1])

    @long
    def test_another_case_that_fails_is_repaired_and_named(self):
        self.broken("return min(first + kTile, n)", "return first + kTile")
        report = json.loads(self.call("repair --kernel ./rows.so --dtype fp32 --heads 2 --seqlen 8 --head-dim 16 --json "
                                      "--line tile.cuh:3", 0))
        self.assertIn("The case that was named agrees", " ".join(report["notes"]))
        self.assertTrue(report["found"])
        self.assertIn("min(first + kTile, n)", report["edits"][0]["diff"])

    def test_cases_that_the_kernel_refuses_are_held_against_no_edit(self):
        refuses = KERNEL.replace("  attend(c.q", '  if (c.seqlen() == 1) c.refuse("it takes no single query");\n  attend(c.q')
        self.assertNotEqual(refuses, KERNEL)
        self.build(refuses.replace("j < keys; ++j) l +=", "j <= keys; ++j) l +="))
        report = self.report(0, "--line rows.cu:17")
        self.assertTrue(report["found"], report)
        self.assertFalse([case for case in report["cases"] if "S=1 " in case], report["cases"])
        self.build(refuses)
        self.assertEqual(self.report(0)["verdict"], "agrees")

    def test_a_kernel_that_agrees_has_nothing_to_repair(self):
        self.build()
        report = self.report(0)
        self.assertFalse(report["found"])
        self.assertEqual((report["verdict"], report["edits"]), ("agrees", []))
        self.assertTrue(self.call(f"repair --kernel ./rows.so {CASE}", 0).startswith("AGREES ALREADY"))

    def test_where_nothing_is_found_it_says_so(self):
        self.build(KERNEL.replace("l *= alpha", "l += alpha", 1).replace("m + logf(l)", "3 * m - 2 * logf(l)", 1))
        wrong = next(i for i, line in enumerate(KERNEL.splitlines(), 1) if "l *= alpha" in line)
        report = self.report(1, f"--time-limit 15 --line rows.cu:{wrong}")
        self.assertFalse(report["found"])
        self.assertIn("agree", report["reason"])
        # The other bug is in lse alone: most of the elements are right under an edit of this one.
        best = report["helpful"][0]
        self.assertEqual((best["file"].rsplit("/", 1)[1], best["line"]), ("rows.cu", wrong))
        self.assertLess(10 * best["left"], best["of"])
        text = self.call(f"repair --kernel ./rows.so {CASE} --time-limit 3 --quiet", 1)
        self.assertTrue(text.startswith("NOTHING FOUND: "), text)

    @long
    def test_a_trace_that_tries_edits_puts_their_line_first(self):
        wrong = "return min(first + kTile, n - 1);"
        self.build(header=HEADER.replace("return min(first + kTile, n);", wrong))
        case = f"trace --kernel ./rows.so {CASE} --no-history"
        alone = json.loads(self.call(f"{case} --json", 1))["line_divergence"]
        self.assertIsNone(alone["edits"])
        self.assertNotIn(wrong, alone["suspects"][0]["text"])
        lines = json.loads(self.call(f"{case} --json --try-edits 500 -o x.h5", 1))["line_divergence"]
        # tile_end(first, n + 1) where it is called does the same, and may be found first.
        first = lines["suspects"][0]
        self.assertTrue(wrong in first["text"] or "= tile_end(first, n)" in first["text"], lines["suspects"])
        self.assertTrue(first["why"].startswith("under an edit of this line all"), lines["suspects"])
        self.assertEqual(lines["answer"], "unsure")
        self.assertRegex(lines["edits"]["diff"], "\n-.* tile_end")
        self.assertGreater(len(lines["edits"]["cases"]), 5)
        shown = self.call("show x.h5 --lines", 1)
        self.assertIn("Under this edit", shown)

    @long
    def test_edits_are_tried_where_the_kernel_crashes(self):
        wrong = "q + at + row * (dim + 99999999)"
        self.build(KERNEL.replace("q + at + row * dim", wrong))
        report = json.loads(self.call(f"trace --kernel ./rows.so {CASE} --no-history --json --try-edits 500", 2))
        first = report["line_divergence"]["suspects"][0]
        self.assertIn(wrong, first["text"])
        self.assertTrue(first["why"].startswith("under an edit of this line all"), first)

    @long
    def test_an_edit_that_makes_this_case_agree_alone_has_its_line_told(self):
        self.build_with_two_bugs("l *= alpha", "l *= 1.0f")
        text = self.call(f"trace --kernel ./rows.so {CASE} --no-history --json --try-edits 30", 1)
        lines = json.loads(text)["line_divergence"]
        self.assertEqual(lines["edits"]["diff"], "")
        whys = [suspect["why"] for suspect in lines["suspects"]]
        agree = r"^under an edit of this line [0-9]+ of [0-9]+ cases agree: "
        self.assertNotRegex(whys[0], agree)
        self.assertRegex(whys[1], agree)
        self.assertEqual(lines["answer"], "unsure")

    def test_a_trace_says_why_no_edit_was_found(self):
        self.build(KERNEL.replace("l *= alpha", "l *= 3", 1).replace("m + logf(l)", "m - logf(l)", 1))
        case = f"trace --kernel ./rows.so {CASE} --no-history"
        self.assertIn("Small edits: none of the", self.call(f"{case} --try-edits 3", 1))
        self.assertIn("--try-edits", self.call(f"{case} --try-edits 0", 2))
        self.assertIn("--no-lines", self.call(f"{case} --try-edits 3 --no-lines", 2))

    @long
    def test_without_an_instrumented_build_that_is_said(self):
        self.broken("m + logf(l)", "m - logf(l)", "--no-lockstep")
        report = self.report(0, "--line rows.cu:28")
        self.assertIn("no instrumented build", " ".join(report["notes"]))
        self.assertNotIn("check", " ".join(report["cases"]))

    def test_what_cannot_be_looked_at_is_refused_in_words(self):
        refused = self.call(f"repair --kernel fa1 {CASE}", 2)
        self.assertIn("does not say how it was built", refused)
        self.broken("m + logf(l)", "m - logf(l)")
        self.assertIn("expected FILE:LINE", self.call(f"repair --kernel ./rows.so {CASE} --line rows.cu", 2))
        self.assertIn("--backend takes host", self.call(f"repair --kernel ./rows.so {CASE} --backend cuda", 2))
        self.assertIn("--time-limit", self.call(f"repair --kernel ./rows.so {CASE} --time-limit 0", 2))
        self.assertIn("--time-limit is that of all", self.call(f"repair --kernel ./rows.so {CASE} --timeout 3", 2))
        (self.folder / "include/tile.cuh").write_text(HEADER + "\n")
        self.assertIn("STALE", self.call(f"repair --kernel ./rows.so {CASE}", 2))
        (self.folder / "include/tile.cuh").unlink()
        self.assertIn("are not all there", self.call(f"repair --kernel ./rows.so {CASE}", 2))

    def test_it_stops_at_its_time_limit(self):
        self.build(KERNEL.replace("l *= alpha", "l *= 3", 1).replace("m + logf(l)", "m - logf(l)", 1))
        report = self.report(1, "--time-limit 4")
        self.assertTrue(report["out_of_time"])
        self.assertLess(report["seconds"], 30)


if __name__ == "__main__":
    paths(__doc__, 1)
    main(Repair, sys.argv[1:], {})
