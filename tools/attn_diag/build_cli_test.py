#!/usr/bin/env python3
"""attn-diag build: from a user's sources to a library that runs, and what it says where that cannot be.

usage: build_cli_test.py PATH_TO_ATTN_DIAG [unittest arguments]
"""

import json
import os
import pathlib
import shutil
import subprocess
import unittest

from testing.command_test import CommandTest, paths

NVCC = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
CASE = "--dtype fp32 --heads 2 --seqlen 9 --head-dim 16 --stage full"

KERNEL = """\
#include <cuda_runtime.h>
#include "sizes.h"

#define LAUNCH(kernel, grid, block, bytes, stream) kernel<<<grid, block, bytes, stream>>>

template <int kMost>
__global__ void __launch_bounds__(32) rows(const float* q, const float* k, const float* v, float* o,
                                           float* lse, int S, int D, float scale) {
  extern __shared__ __align__(16) float sScores[];
  __shared__ alignas(16) float sSum[1];
  const long long head = (long long)blockIdx.y * S * D;
  const int row = blockIdx.x;
  for (int j = threadIdx.x; j < S; j += 32) {
    float s = 0.0f;
#pragma unroll 4
    for (int d = 0; d < D; ++d) s += q[head + row * D + d] * k[head + j * D + d];
    sScores[j] = s * scale;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    float m = -INFINITY, l = 0.0f;
    for (int j = 0; j < S; ++j) m = fmaxf(m, sScores[j]);
    for (int j = 0; j < S; ++j) {
      float p;
      asm volatile("ex2.approx.ftz.f32 %0, %1;\\n" : "=f"(p) : "f"((sScores[j] - m) * 1.44269504f));
      sScores[j] = p;
      l += p;
    }
    sSum[0] = l;
    lse[blockIdx.y * S + row] = m + logf(l);
  }
  __syncthreads();
  for (int d = threadIdx.x; d < D; d += 32) {
    float sum = 0.0f;
    for (int j = 0; j < S; ++j) sum += sScores[j] * v[head + j * D + d];
    o[head + row * D + d] = sum / sSum[0];
  }
}

// What nvcc lets a source use that includes nothing but CUDA.
inline int whole(std::pair<int, int> sizes) {
  alignas(int) char room[sizeof(int)];
  int* most = new (room) int(std::min(INT_MAX, std::numeric_limits<int>::max()));
  return std::move(*most) == abs(-INT_MAX) ? sizes.first : 0;
}

void attend(const float* q, const float* k, const float* v, float* o, float* lse, int heads, int S,
            int D, float scale, cudaStream_t stream) {
  if (whole({1, 2}) == 0) abort();
  LAUNCH(rows<SIZE>, dim3(S, heads), 32, S * sizeof(float), stream)(q, k, v, o, lse, S, D, scale);
}
"""

ADAPTER = """\
#include <attn_diag/kernels/bring.h>

void attend(const float* q, const float* k, const float* v, float* o, float* lse, int heads, int S,
            int D, float scale, cudaStream_t stream);

static void call(const attn_diag::Call& c) {
  attend(c.q<float>(), c.k<float>(), c.v<float>(), c.o<float>(), c.lse(), c.heads(), c.seqlen(),
         c.head_dim(), c.scale(), c.stream());
}
ATTN_DIAG_EXPORT({.name = "rows", .call = call, .dtypes = fp32, .tile = {1, 64}});
"""


class Build(CommandTest):
    """Every test runs in a directory of its own, with the sources of a user."""

    def setUp(self):
        super().setUp()
        self.write("mine.cu", KERNEL)
        self.write("adapter.cu", ADAPTER)
        self.write("include/sizes.h", "#define SIZE 64\n")

    def write(self, name, text):
        (self.folder / name).parent.mkdir(exist_ok=True)
        (self.folder / name).write_text(text)

    def line_of(self, name, text):
        lines = (self.folder / name).read_text().splitlines()
        return next(i for i, line in enumerate(lines, 1) if text in line)

    def edit(self, name, old, new):
        text = (self.folder / name).read_text()
        self.assertIn(old, text)
        self.write(name, text.replace(old, new, 1))

    def test_sources_become_a_library_that_runs_and_knows_its_sources(self):
        build = "build mine.cu adapter.cu -o mine.so -I include --no-nvcc"
        result = self.finished(build, 0)
        self.assertEqual(result.stdout, "wrote mine.so\nwrote mine.lockstep.so\n")
        self.assertEqual(result.stderr, "")
        for schedule in "forward", "seed:3", "lockstep":
            self.finished(f"run --kernel ./mine.so:rows --schedule {schedule} {CASE}", 0)
        # Nobody said which dtype: that which it takes, and the line to run it again says so.
        for command in "run", "trace":
            text = " ".join(self.finished(f"{command} --kernel ./mine.so:rows --heads 2 --seqlen 9", 0).stdout.split())
            self.assertIn("does not take the defaults: chosen was --dtype fp32.", text)
            self.assertIn("--dtype fp32 --layout", text)
        self.assertIn("It takes the problem with --dtype fp32.",
                      self.finished("trace --kernel ./mine.so:rows --dtype fp16", 2).stderr)
        self.write("include/sizes.h", "#define SIZE 32\n")
        self.assertIn("STALE", self.finished(f"run --kernel ./mine.so:rows {CASE}", 0).stdout)

    @unittest.skipIf(shutil.which("ccache") is None, "needs ccache")
    def test_what_ccache_has_is_not_compiled_again(self):
        build = "build mine.cu adapter.cu -o mine.so -I include --no-nvcc"
        cache = {"CCACHE_DIR": str(self.folder / "cache"), "CCACHE_NOHASHDIR": "1"}

        def hits():
            text = subprocess.run(["ccache", "--print-stats"], env={**os.environ, **cache}, capture_output=True,
                                  text=True, check=True).stdout
            return sum(int(line.split()[1]) for line in text.splitlines()
                       if line.startswith(("direct_cache_hit", "preprocessed_cache_hit")))

        def built(**env):
            self.finished(build, 0, **env)
            return [(self.folder / name).read_bytes() for name in ("mine.so", "mine.lockstep.so")]

        without = built(CCACHE_DISABLE="1")
        self.assertEqual(built(**cache), without)
        self.assertEqual(hits(), 0)
        self.assertEqual(built(**cache), without)
        self.assertEqual(hits(), 4)
        self.edit("mine.cu", "l += p;", "l += p * 2;")
        self.assertNotEqual(built(**cache), without)
        self.assertEqual(hits(), 6)  # the adapter's two
        # A cache that cannot be written to.
        self.finished(build, 0, CCACHE_DIR="/dev/null/cache")

    def test_an_adapter_that_includes_the_source_is_one_file_with_it(self):
        declaration = ADAPTER[ADAPTER.index("void attend"):ADAPTER.index("static void call")]
        self.write("adapter.cu", ADAPTER.replace(declaration, '#include "mine.cu"\n'))
        self.finished("build mine.cu --adapter adapter.cu -o mine.so -I include --no-nvcc --no-lockstep", 0)
        self.assertFalse((self.folder / "mine.lockstep.so").exists())
        self.finished(f"run --kernel ./mine.so:rows {CASE}", 0)

    def test_an_adapter_in_another_folder_finds_what_lies_beside_the_source(self):
        declaration = ADAPTER[ADAPTER.index("void attend"):ADAPTER.index("static void call")]
        for name, text in ("mine.h", declaration), ("mine.cu", KERNEL):
            self.write(f"source/{name}", text)
        for header in "mine.h", "mine.cu":
            self.write("adapters/adapter.cu", ADAPTER.replace(declaration, f'#include "{header}"\n'))
            self.finished("build source/mine.cu --adapter adapters/adapter.cu -o mine.so -I include --no-nvcc --no-lockstep", 0)
            self.finished(f"run --kernel ./mine.so:rows {CASE}", 0)

    def test_an_adapter_that_includes_another_file_of_that_name_is_refused(self):
        declaration = ADAPTER[ADAPTER.index("void attend"):ADAPTER.index("static void call")]
        self.write("right/mine.cu", (self.folder / "mine.cu").read_text())
        self.write("adapter.cu", ADAPTER.replace(declaration, '#include "right/mine.cu"\n'))
        for words in ("mine.cu --adapter adapter.cu", "mine.cu adapter.cu"):
            refused = self.finished(f"build {words} -o mine.so -I include --no-nvcc --no-lockstep", 2).stderr
            self.assertIn("includes 'right/mine.cu', which is not the 'mine.cu' that is given", refused)
        self.finished("build right/mine.cu --adapter adapter.cu -o mine.so -I include --no-nvcc --no-lockstep", 0)

    def test_a_source_that_the_adapter_includes_by_a_macro_is_to_be_left_out(self):
        declaration = ADAPTER[ADAPTER.index("void attend"):ADAPTER.index("static void call")]
        self.write("adapter.cu", ADAPTER.replace(declaration, "#include SOURCE\n"))
        build = "build {} --adapter adapter.cu -o mine.so -I include --no-nvcc --no-lockstep -D SOURCE=\\\"mine.cu\\\""
        result = self.finished(build.format("mine.cu"), 2)
        self.assertIn("adapter.cu includes mine.cu, which is compiled by itself as well: leave mine.cu out", result.stderr)
        self.finished(build.format("").replace("--adapter ", ""), 0)

    def test_a_case_that_the_adapter_refuses_is_told_what_it_takes(self):
        self.edit("adapter.cu", "  attend(c.q", '  if (c.seqlen() % 16 != 0) c.refuse("whole tiles");\n  attend(c.q')
        self.finished("build mine.cu adapter.cu -o mine.so -I include --no-nvcc", 0)
        for command in "run", "trace", "check":
            self.assertIn("whole tiles. It takes the problem with --seqlen 16.",
                          self.finished(f"{command} --kernel ./mine.so --seqlen 9 --dtype fp32", 2).stderr)
        self.edit("adapter.cu", "c.seqlen() % 16", "c.seqlen() % 11")
        self.finished("build mine.cu adapter.cu -o mine.so -I include --no-nvcc --no-lockstep", 0)
        self.assertNotIn("It takes", self.finished("run --kernel ./mine.so --seqlen 9 --dtype fp32", 2).stderr)

    def test_explain_lists_what_was_translated_with_its_lines(self):
        text = self.finished("build mine.cu --explain -I include --no-nvcc", 0).stdout
        launch = self.line_of("mine.cu", "LAUNCH(rows")
        self.assertIn(f"mine.cu:{launch}: rows<64><<<dim3(S, heads), 32, S * sizeof(float), stream>>>", text)
        self.assertIn(f"mine.cu:{self.line_of('mine.cu', 'extern __shared__')}: extern __shared__", text)
        self.assertIn("ex2.approx.ftz.f32", text)
        self.assertIn("__launch_bounds__(32)", text)
        self.assertEqual(list(self.folder.glob("*.so")), [])
        report = json.loads(self.finished("build mine.cu --explain --json -I include --no-nvcc", 0).stdout)
        kinds = [item["kind"] for item in report["sources"][0]["translated"]]
        for kind in "launch", "shared", "dynamic_shared", "asm", "launch_bounds", "pragma":
            self.assertIn(kind, kinds)

    def test_what_is_not_supported_is_an_error_at_its_line(self):
        self.edit("mine.cu", "ex2.approx.ftz.f32 %0, %1;", "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0}, %1;")
        result = self.finished("build mine.cu adapter.cu -o mine.so -I include --no-nvcc", 2)
        line = self.line_of("mine.cu", "wgmma")
        self.assertIn(f"mine.cu:{line}: error: unsupported: wgmma.mma_async.sync.aligned.m64n8k16", result.stderr)
        self.assertIn("asm volatile(", result.stderr)  # the line itself
        self.assertEqual(list(self.folder.glob("*.so")), [])

    def test_cublas_may_be_named_and_not_called(self):
        product = "inline int product(cublasHandle_t h, float* a) {{ return {}; }}\n"
        call = "cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, a, a, 4, a, 4, a, a, 4)"
        self.write("include/sizes.h", "#include <cublas_v2.h>\n#define SIZE 64\n" + product.format(call))
        build = "build mine.cu adapter.cu -o mine.so -I include --no-nvcc --no-lockstep"
        self.finished(build, 0)
        self.edit("mine.cu", "if (whole(", "product(nullptr, nullptr);\n  if (whole(")
        self.assertIn("cuBLAS is not there on the host executor: write the product as a kernel",
                      self.finished(build, 2).stderr)

    def test_errors_of_the_compiler_are_shown_at_the_users_line(self):
        self.edit("mine.cu", "sSum[0] = l;", "sSum[0] = missing;")
        result = self.finished("build mine.cu adapter.cu -o mine.so -I include --no-nvcc", 2)
        line = self.line_of("mine.cu", "missing")
        self.assertRegex(result.stderr, rf"mine\.cu:{line}:\d+: error: .*missing")
        self.assertEqual(result.stderr.count(f"mine.cu:{line}:"), 1, result.stderr)  # not of each build

    def test_what_nvcc_does_not_include_is_not_there_either(self):
        # Headers that nobody asked for are read by every build, too.
        self.edit("mine.cu", "inline int whole", "std::shared_ptr<int> owner;\ninline int whole")
        result = self.finished("build mine.cu -o mine.so -I include --no-nvcc --no-lockstep", 2)
        self.assertRegex(result.stderr, rf"mine\.cu:{self.line_of('mine.cu', 'shared_ptr')}:.*error: .*shared_ptr")

    def test_too_much_static_shared_memory_is_refused_unless_the_architecture_has_it(self):
        self.edit("mine.cu", "float sSum[1]", "float sSum[20000]")
        build = "build mine.cu adapter.cu -o mine.so -I include --no-nvcc --no-lockstep"
        self.assertIn("rows: too much static shared memory", self.finished(build, 2).stderr)
        self.finished(build + " --arch sm_90a", 0)

    def test_a_library_without_adapter_says_how_to_get_one(self):
        result = self.finished("build mine.cu -o mine.so -I include --no-nvcc --no-lockstep", 2)
        self.assertIn("attn-diag adapt mine.cu", result.stderr)
        self.assertIn("attn_diag_kernel_library", result.stderr)

    def test_flags_behind_dashes_and_macros_reach_the_compiler(self):
        (self.folder / "include/sizes.h").write_text("")
        build = "build mine.cu adapter.cu -o mine.so -I include --no-nvcc --no-lockstep"
        self.finished(build, 2)
        self.finished(build + " -D SIZE=64", 0)
        self.finished(build + " -- -DSIZE=64", 0)

    def test_a_missing_function_is_found_when_linking(self):
        self.edit("adapter.cu", "attend(c.q", "attend_all(c.q")
        self.edit("adapter.cu", "void attend(", "void attend_all(")
        result = self.finished("build mine.cu adapter.cu -o mine.so -I include --no-nvcc --no-lockstep", 2)
        self.assertIn("attend_all", result.stderr)

    def test_bad_usage_is_refused_in_words(self):
        for line, words in [
            ("build nope.cu -o x.so", "no source file 'nope.cu'"),
            ("build -o x.so", "No source was given"),
            ("build mine.cu", "No output was named"),
            ("build mine.cu -o x.dll", "ends in .so"),
            ("build mine.cu -o nowhere/x.so", "no folder 'nowhere'"),
            ("build mine.cu -o x.so --backend gpu", "expected host or cuda"),
            ("build mine.cu -o x.so --arch 90", "--arch 90: expected"),
            ("build mine.cu -o x.so --std c++98", "--std c++98: expected"),
            ("build mine.cu -o x.so --explian", "Did you mean --explain?"),
        ]:
            with self.subTest(line):
                self.assertIn(words, self.finished(line, 2).stderr)
        none = self.finished("build mine.cu -o x.so", 2, CXX="/nowhere/g++").stderr
        self.assertIn("There is no compiler '/nowhere/g++'", none)
        self.assertIn("CXX", none)

    @unittest.skipIf(NVCC is None, "needs nvcc")
    def test_a_package_that_is_there_in_part_says_what_is_missing(self):
        settings = (pathlib.Path(self.program).resolve().parent.parent / "lib/attn_diag/kernel_build.conf").read_text()
        lines = [line for line in settings.splitlines() if not line.startswith("include")]
        (self.folder / "lib/attn_diag").mkdir(parents=True)
        (self.folder / "lib/attn_diag/kernel_build.conf").write_text(
            "\n".join(lines + ["include ../../include/attn_diag_host_cuda"]))
        (self.folder / "bin").mkdir()
        shutil.copy(self.program, self.folder / "bin/attn-diag")
        result = subprocess.run([self.folder / "bin/attn-diag", "build", "mine.cu", "adapter.cu", "-o", "mine.so"],
                                cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("include/attn_diag_host_cuda' is not there", result.stderr)
        self.assertIn("cmake --install", result.stderr)

    def test_nvcc_is_asked_too_and_its_errors_are_shown_apart(self):
        build = "build mine.cu adapter.cu -o mine.so -I include --no-lockstep"
        self.assertNotIn("error", self.finished(build, 0).stderr)
        # A host function called by a kernel: g++ does not mind.
        self.edit("mine.cu", "template <int kMost>", "int on_host() { return 1; }\ntemplate <int kMost>")
        self.edit("mine.cu", "sSum[0] = l;", "sSum[0] = l * on_host();")
        result = self.finished(build, 2)
        self.assertIn("nvcc says of mine.cu", result.stderr)
        self.assertIn(f"mine.cu({self.line_of('mine.cu', 'l * on_host')}): error", result.stderr)
        self.assertIn("wrote mine.so", result.stdout)
        self.finished(build + " --no-nvcc", 0)

    @unittest.skipIf(NVCC is None, "needs nvcc")
    def test_backend_cuda_is_built_by_nvcc(self):
        self.finished("build mine.cu adapter.cu -o mine.cuda.so -I include --backend cuda --arch sm_80", 0)
        text = self.finished("doctor", 0, ATTN_DIAG_KERNEL_PATH=str(self.folder)).stdout
        self.assertRegex(text, r"mine\.cuda\.so .*nvcc.*sm_80")
        # Headers of the system are no sources: they differ from machine to machine.
        library = (self.folder / "mine.cuda.so").read_bytes()
        self.assertIn(b"mine.cu", library)
        self.assertNotIn(b"/usr/include/alloca.h", library)

    @unittest.skipIf(shutil.which("gdb") is None, "needs gdb")
    def test_gdb_stops_at_the_users_line(self):
        self.finished("build mine.cu adapter.cu -o mine.so -I include --no-nvcc --no-lockstep -- -O0", 0)
        line = self.line_of("mine.cu", "sSum[0] = l;")
        result = subprocess.run(
            ["gdb", "-batch", "-ex", "set breakpoint pending on", "-ex", "set confirm off",
             "-ex", f"break mine.cu:{line}", "-ex", "handle SIGVTALRM nostop noprint pass",
             "-ex", "run", "-ex", "print row", "-ex", "kill", "--args", self.program, "run", "--kernel",
             "./mine.so:rows", "--in-process", "--no-history", *CASE.split()],
            cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
        self.assertRegex(result.stdout, rf"Breakpoint 1.*mine\.cu:{line}", result.stdout)
        self.assertIn("$1 = ", result.stdout)


if __name__ == "__main__":
    paths(__doc__, 1)
    unittest.main(verbosity=1)
