#!/usr/bin/env python3
"""attn-diag shrink as it is called: how small cases become, what it writes, and what it refuses.

usage: shrink_cli_test.py PATH_TO_ATTN_DIAG PATH_TO_ZOO [unittest arguments]
"""

import json
import pathlib
import shutil
import subprocess
import tomllib
import unittest

from testing.command_test import CommandTest, paths

ZOO = pathlib.Path()
CASE = "--dtype fp32 --heads 2 --seqlen 21 --head-dim 16"

KERNEL = """\
#include <cuda_runtime.h>

__global__ void rows(const float* q, const float* k, const float* v, float* o, float* lse, int n, int dim,
                     float scale) {
  __shared__ float s[4];
  const int row = blockIdx.x, at = blockIdx.y * n * dim;
  float m = -INFINITY, l = 0.0f;
  for (int first = 0; first < n; first += 4) {
    const int keys = min(4, n - first);
    for (int j = threadIdx.x; j < keys; j += 32) {
      float sum = 0.0f;
      for (int d = 0; d < dim; ++d) sum += q[at + row * dim + d] * k[at + (first + j) * dim + d];
      s[j] = sum * scale;
    }
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


class Shrink(CommandTest):
    def build(self, old="", new=""):
        """The kernel, with a bug where one is named."""
        self.assertIn(old, KERNEL)
        (self.folder / "rows.cu").write_text(KERNEL.replace(old, new, 1) if old else KERNEL)
        self.call("build rows.cu -o rows.so --no-nvcc --no-lockstep", 0)

    def shrink(self, flags="", code=1, case=CASE, kernel="./rows.so"):
        return json.loads(self.call(f"shrink --kernel {kernel} {case} --json {flags}", code))

    def sizes(self, report):
        return {size["name"]: size for size in report["sizes"]}

    def assert_size(self, report, name, to, below, above):
        """A size with what its neighbours say, and that all smaller ones were tried."""
        size = self.sizes(report)[name]
        got = [size["to"], size["below"] and size["below"]["said"], size["above"] and size["above"]["said"]]
        self.assertEqual(got, [to, below, above], size)
        self.assertEqual(size["smaller_tried"], size["smaller"])

    def test_a_fault_of_a_kernel_of_ours_becomes_one_query_and_two_keys(self):
        fault = "split_k@reduce-counts-l-twice"
        report = self.shrink("--mask causal --batch 2 --heads 4 --kv-heads 2 -o small.h5", kernel=fault, case="")
        p = report["smallest"]["problem"]
        self.assertEqual([p[n] for n in ("batch", "heads", "kv_heads", "seqlen_q", "seqlen_k", "head_dim")],
                         [1, 1, 1, 1, 2, 1])
        self.assertEqual(p["mask"], "none")
        self.assertEqual(report["smallest"]["tile"], [16, 16])
        self.assertEqual(report["failure"]["tensor"], "merged_o")
        self.assertEqual(report["numbers"], {"all": 5, "not_zero": 1, "integers": True})
        self.assert_size(report, "seqlen_k", 2, "passes", "fails")
        self.assertEqual(self.sizes(report)["seqlen_k"]["largest_passing"], 1)
        self.assertIn("heads of a KV head", self.sizes(report))
        # The dump shows it again, without the kernel and with it.
        self.assertIn("merged_o", self.call("compare small.h5", 1))
        self.assertIn("Stage reduce is wrong in 1 of 1 row", self.call("diagnose small.h5", 1))
        self.assertIn("merged_o", self.call(f"trace --kernel {fault} --inputs small.h5 --tile 16x16 --num-splits 1", 1))
        self.call("trace --kernel split_k --inputs small.h5 --tile 16x16 --num-splits 1", 0)
        # With its numbers as they were flags name it.
        kept = self.shrink("--mask causal --batch 2 --heads 4 --kv-heads 2 --keep-values", kernel=fault, case="")
        self.assertEqual(kept["smallest"], report["smallest"])
        self.assertEqual(kept["numbers"]["not_zero"], 5)
        self.assertIn('make_inputs(problem, "randn", 0, 1)', kept["test"])
        # So does the case before its numbers were changed.
        self.call(report["trace_before"].split(" ", 1)[1], 1)
        # Every step of the sheet; the sum of P over l is one.
        sheet = tomllib.loads(report["sheet"])
        self.assertEqual((sheet["expected"]["merged_o"], sheet["actual"]["merged_o"]), ([1], [2]))
        self.assertEqual((sheet["expected"]["P"], sheet["actual"]["P"]), ([1, 1], [1, 1]))
        self.assertEqual((sheet["inputs"]["q"], sheet["inputs"]["v"]), ([0], [[1], [0]]))
        self.assertIn("# merged_o is wrong in 1 of 1: (0, 0, 0, 0, 0) is 2, expected 1", report["sheet"])

    def test_a_kernel_of_the_zoo_whose_sum_is_not_rescaled(self):
        for file in (ZOO / "dispatch_types").iterdir():
            shutil.copy(file, self.folder)
        subprocess.run(["patch", "-p1", "-i", "broken.patch"], cwd=self.folder, check=True, stdout=subprocess.PIPE)
        self.call("build attention_forward.cu --adapter adapter.cu -o zoo.so --no-nvcc --no-lockstep", 0)
        report = self.shrink(kernel="./zoo.so", case="--mask causal --seqlen 65 --head-dim 32 --dtype fp32")
        # It takes two keys for the maximum to rise; 32 is the least head dimension that it has.
        self.assert_size(report, "seqlen", 2, "passes", "fails")
        self.assertEqual(report["smallest"]["problem"]["head_dim"], 32)
        self.assertEqual(self.sizes(report)["head_dim"]["smaller"], 0)
        self.assertEqual(report["failure"]["tensor"], "lse")
        self.assertTrue(report["numbers"]["integers"])
        self.assertEqual(report["numbers"]["not_zero"], 2)

    def test_nothing_is_taken_to_be_monotone(self):
        # The last of 9, 13, 17 or 21 keys is left out: 8 is right, and so is 10.
        self.build("const int keys = min(4, n - first);",
                   "const int keys = min(4, n - first) - (n > 6 && n % 4 == 1 && n - first == 1);")
        report = self.shrink()
        self.assert_size(report, "seqlen", 9, "passes", "passes")
        self.assertEqual(self.sizes(report)["seqlen"]["smaller_tried"], 8)
        self.assertIn("9: 8 passes; 10 passes; every smaller one was tried (8)",
                      " ".join(self.call(f"shrink --kernel ./rows.so {CASE}", 1).split()))
        self.assertEqual(self.shrink("--threads 3")["smallest"], report["smallest"])
        # Halving goes from 9, which is right, and 16 over 12 and 13 to 14, then over 11.
        self.build("m + logf(l)", "m + logf(l) + (n == 10 || n > 13)")
        self.assert_size(self.shrink(), "seqlen", 10, "passes", "passes")

    def test_where_it_shows_elsewhere_the_place_is_cut_out(self):
        # No number of head 0 is that large.
        self.build("m + logf(l);", "m + logf(l) + (m > 1.5f);")
        report = self.shrink()
        self.assertEqual(report["smallest"]["problem"]["heads"], 1)
        self.assertNotEqual(report["origin"], [0, 0, 0, 0])
        self.assertTrue(report["numbers"]["integers"], report["test"])
        self.assertIsNone(report["trace_before"])

    def test_a_place_that_matters_is_kept(self):
        self.build("m + logf(l);", "m + logf(l) + blockIdx.y;")
        report = self.shrink()
        self.assertEqual(report["smallest"]["problem"]["heads"], 2)
        self.assert_size(report, "heads", 2, "passes", "fails")
        self.assertEqual(report["first"]["head"], 1)

    def test_nan_and_cells_that_nobody_wrote_stay_what_they_are(self):
        self.build("l *= alpha;", "l *= first == 8 ? NAN : alpha;")
        report = self.shrink()
        self.assert_size(report, "seqlen", 9, "passes", "fails")
        self.assertEqual(report["failure"]["what"], "lse is NaN")
        self.assertEqual(report["numbers"]["not_zero"], 0)
        self.build("if (threadIdx.x == 0) lse", "if (threadIdx.x == 0 && row != 5) lse")
        report = self.shrink()
        self.assert_size(report, "seqlen", 6, "passes", "fails")
        self.assertEqual(report["failure"]["what"], "lse has cells that are never written")

    def test_another_failure_is_not_this_one(self):
        # Below 5 keys lse is wrong as well, but it is o that is wrong in the case.
        self.build("o[at + row * dim + d] /= l;\n  if (threadIdx.x == 0) lse[blockIdx.y * n + row] = m + logf(l)",
                   "o[at + row * dim + d] /= n > 4 ? l + 1 : l;\n"
                   "  if (threadIdx.x == 0) lse[blockIdx.y * n + row] = m + logf(n > 4 ? l : l + 1)")
        report = self.shrink()
        self.assertEqual(report["failure"]["tensor"], "o")
        self.assert_size(report, "seqlen", 5, "fails_otherwise", "fails")
        self.assertIsNone(self.sizes(report)["seqlen"]["largest_passing"])

    def test_a_result_that_moves_stays_one(self):
        self.build("    m = m_new;\n    __syncthreads();\n", "    m = m_new;\n")
        report = self.shrink("-o race.h5")
        self.assertTrue(report["failure"]["moves"])
        self.assert_size(report, "seqlen", 5, "passes", "fails")
        p = report["smallest"]["problem"]
        again = json.loads(self.call(f"trace --kernel ./rows.so --inputs race.h5 --tile 1x4 --no-lines --json", 1))
        self.assertNotEqual(again["sanity"]["finding"], "steady", p)

    def test_refused_runs_and_crashes_become_smaller_too(self):
        self.build("lse[blockIdx.y * n + row] =", "lse[blockIdx.y * n + row + (n > 4 ? 40 : 0)] =")
        report = self.shrink("-o outside.h5")
        self.assertEqual(report["failure"]["kind"], "refused")
        self.assertIn("wrote outside lse: first at byte 160 of a buffer of 20 bytes", report["failure"]["what"])
        self.assert_size(report, "seqlen", 5, "passes", "fails")
        self.assertEqual(report["numbers"]["not_zero"], 0)
        self.assertIsNone(report["sheet"])
        self.assertIn("wrote outside lse", self.call("trace --kernel ./rows.so --inputs outside.h5 --no-lines", 2))
        self.build("  rows<<<", "  if (n > 10) __builtin_trap();\n  rows<<<")
        report = self.shrink()
        self.assertEqual(report["failure"]["kind"], "crash")
        self.assertIn("signal 4", report["failure"]["what"])
        self.assert_size(report, "seqlen", 11, "passes", "fails")
        self.build("    m = m_new;", "    m = m_new;\n    if (first > 4) __trap();")
        self.assert_size(self.shrink(), "seqlen", 9, "passes", "fails")

    def test_the_line_is_held_where_that_is_asked_for(self):
        # Two bugs of lse: line 28 adds 1 from 9 keys on, and line 19 is wrong from the second tile on.
        self.build("l *= alpha;", "l = l * alpha + (first == 8 ? 1.0f : 0.0f);")
        report = self.shrink("--lines")
        self.assertRegex(report["failure"]["line"], r"rows.cu:\d+")
        self.assert_size(report, "seqlen", 9, "passes", "fails")
        self.assertIn("The line stays rows.cu:", self.call(f"shrink --kernel ./rows.so {CASE} --lines", 1))
        self.assertIsNone(self.shrink()["failure"]["line"])

    def test_files_are_written_and_not_over_others(self):
        self.build("m + logf(l)", "m - logf(l)")
        text = self.call(f"shrink --kernel ./rows.so {CASE} -o a.h5 --test a_test.cc --sheet a.toml", 1)
        self.assertNotIn("TEST_CASE", text)
        self.assertIn("TEST_CASE", (self.folder / "a_test.cc").read_text())
        sheet = tomllib.loads((self.folder / "a.toml").read_text())
        self.assertAlmostEqual(sheet["expected"]["lse"][0] + sheet["actual"]["lse"][0], 0, 5)
        for flag in ("-o a.h5", "--test a_test.cc", "--sheet a.toml"):
            self.assertIn("exists already", self.call(f"shrink --kernel ./rows.so {CASE} {flag}", 2))
        self.call(f"shrink --kernel ./rows.so {CASE} -o a.h5 --test a_test.cc --sheet a.toml --force --quiet", 1)
        # What a dump holds can be made smaller, too.
        self.assertEqual(self.shrink("--inputs a.h5", case="")["given"]["problem"]["seqlen_k"], 2)

    def test_what_agrees_has_nothing_to_make_smaller(self):
        self.build()
        report = self.shrink(code=0)
        self.assertEqual((report["verdict"], report["smallest"], report["failure"]), ("agrees", None, None))
        self.assertTrue(self.call(f"shrink --kernel ./rows.so {CASE} -o no.h5", 0).startswith("AGREES: "))
        self.assertFalse((self.folder / "no.h5").exists())

    def test_what_cannot_be_done_is_refused_in_words(self):
        self.build("m + logf(l)", "m - logf(l)")
        call = f"shrink --kernel ./rows.so {CASE}"
        self.assertIn("--backend takes host", self.call(f"{call} --backend cuda", 2))
        self.assertIn("--time-limit is that of all", self.call(f"{call} --timeout 3", 2))
        self.assertIn("--time-limit", self.call(f"{call} --time-limit 0", 2))
        self.assertIn("which is not given", self.call(f"{call} --deflate 3", 2))
        self.assertIn("dtype fp32", self.call("shrink --kernel ./rows.so --dtype fp16", 2))
        self.build("  rows<<<", "  for (volatile int i = 0; n > 10; i = i) {}\n  rows<<<")
        self.assertIn("does not end within", self.call(f"{call} --time-limit 4", 2))

    def test_it_stops_at_its_time_limit_with_what_it_has(self):
        # It sleeps, however fast the machine is: some seventy cases of two runs each, two at a time.
        self.build("#include <cuda_runtime.h>", "#include <cuda_runtime.h>\n#include <unistd.h>")
        source = (self.folder / "rows.cu").read_text()
        (self.folder / "rows.cu").write_text(source.replace("  rows<<<", "  usleep(150000);\n  rows<<<", 1)
                                              .replace("m + logf(l)", "m + logf(l) + (n > 14 && m > 0.7f)"))
        self.call("build rows.cu -o rows.so --no-nvcc --no-lockstep", 0)
        report = self.shrink("--time-limit 8 --threads 2")
        self.assertTrue(report["out_of_time"])
        self.assertLess(report["seconds"], 20)
        self.assertGreaterEqual(report["smallest"]["problem"]["seqlen_k"], 15)
        text = self.call(f"shrink --kernel ./rows.so {CASE} --time-limit 8 --threads 2 --quiet", 1)
        self.assertTrue(text.startswith("SMALLEST in the time there was: "), text)


if __name__ == "__main__":
    ZOO = pathlib.Path(*paths(__doc__, 2))
    unittest.main()
