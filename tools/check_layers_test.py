#!/usr/bin/env python3
"""check_layers is red on planted violations, green on the tree it belongs to."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parent


def check(root):
    done = subprocess.run([sys.executable, TOOLS / "check_layers", root], capture_output=True,
                          text=True, check=False)
    return done.returncode, done.stdout


class CheckLayers(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = pathlib.Path(temporary.name)
        self.write("kernels/include/attn_diag/kernels/problem.h", "#include <cstdint>\n")
        self.write("kernels/detail.h", "#include <cstdint>\n")
        self.write("reference/include/attn_diag/reference/reference.h", "#include <vector>\n")
        self.write("harness/include/attn_diag/harness/run.h", "#include <string>\n")
        self.write("harness/include/attn_diag/harness/host/executor.h", "#include <string>\n")
        self.write("harness/host/include/cuda_runtime.h", "#include <cstdint>\n")
        self.write("harness/dump/hdf5_file.h", "#include <hdf5.h>\n")

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        parts = pathlib.PurePosixPath(path).parts
        if parts[0] == "harness" and len(parts) > 2 and path.endswith((".h", ".cc")):
            (self.root / "harness" / parts[1] / "README.md").write_text("# A room\n", encoding="utf-8")

    def assert_red(self, path, include, expected):
        self.write(path, f"// a comment\n#include {include}\n")
        code, output = check(self.root)
        self.assertEqual(code, 1, output)
        self.assertIn(f"{path}:2: ", output)
        self.assertIn(expected, output)

    def assert_green(self, path, include):
        self.write(path, f"#include {include}\n")
        code, output = check(self.root)
        self.assertEqual(code, 0, output)

    def test_skeleton_is_green(self):
        self.assertEqual(check(self.root)[0], 0)

    def test_kernel_must_not_include_reference(self):
        self.assert_red("kernels/fa1/fa1.cu", '"attn_diag/reference/reference.h"',
                        "layer 'kernels' must not include layer 'reference'")

    def test_kernel_must_not_include_harness(self):
        self.assert_red("kernels/fa1/fa1.cu", "<attn_diag/harness/run.h>", "layer 'harness'")

    def test_kernel_must_not_include_the_executor(self):
        self.assert_red("kernels/fa1/fa1.cu", "<attn_diag/harness/host/executor.h>", "layer 'host'")

    def test_kernel_must_not_use_eigen(self):
        self.assert_red("kernels/fa1/fa1.cu", "<Eigen/Core>", "must not use Eigen")

    def test_contract_must_not_include_a_kernel(self):
        self.assert_red("kernels/include/attn_diag/kernels/tap.h", '"kernels/detail.h"', "private")

    def test_reference_must_not_include_harness(self):
        self.assert_red("reference/softmax.cc", '"attn_diag/harness/run.h"', "layer 'harness'")

    def test_reference_must_not_include_kernel_code(self):
        self.assert_red("reference/softmax.cc", '"kernels/detail.h"', "layer 'kernels'")

    def test_host_executor_must_not_include_the_contract(self):
        self.assert_red("harness/host/pool.cc", '"attn_diag/kernels/problem.h"', "layer 'contract'")

    def test_harness_must_not_include_tools(self):
        self.write("tools/attn_diag/options.h", "#include <string>\n")
        self.assert_red("harness/run/run.cc", '"tools/attn_diag/options.h"', "layer 'tools'")

    def test_harness_must_not_parse_command_lines(self):
        self.assert_red("harness/run/run.cc", "<CLI/CLI.hpp>", "must not use CLI11")

    def test_public_header_must_not_include_a_private_one(self):
        self.assert_red("harness/include/attn_diag/harness/dump.h", '"harness/dump/hdf5_file.h"',
                        "a public header must not include a private one")

    def test_header_that_does_not_exist_is_red(self):
        self.assert_red("harness/run/run.cc", '"attn_diag/harness/nowhere.h"', "no such header")

    def test_harness_may_include_reference_contract_and_executor(self):
        self.write("harness/run/run.cc", '#include "attn_diag/kernels/problem.h"\n'
                   '#include "attn_diag/reference/reference.h"\n'
                   '#include "attn_diag/harness/host/executor.h"\n#include "harness/dump/hdf5_file.h"\n')
        self.assertEqual(check(self.root)[0], 0)

    def test_a_room_must_not_include_one_above_it(self):
        self.write("harness/run/plan.h", "#include <string>\n")
        self.assert_red("harness/capture/consistency.cc", '"harness/run/plan.h"', "room 'capture' is below room 'run'")
        self.assert_red("harness/capture/consistency.cc", '"attn_diag/harness/run.h"', "room 'capture' is below room 'run'")

    def test_a_public_header_is_of_its_room(self):
        self.write("harness/include/attn_diag/harness/capture.h", "#include <string>\n")
        self.assert_red("harness/include/attn_diag/harness/capture.h", '"attn_diag/harness/run.h"', "below room 'run'")

    def test_a_room_may_include_those_below_it(self):
        self.assert_green("harness/trace/closure.cc", '"harness/dump/hdf5_file.h"')
        self.assert_green("harness/trace/closure.cc", '"attn_diag/harness/run.h"')

    def test_a_test_may_include_a_room_above_its_own(self):
        self.write("harness/run/plan.h", "#include <string>\n")
        self.assert_green("harness/capture/capture_test.cc", '"harness/run/plan.h"')

    def test_what_lies_in_no_room_is_red(self):
        self.write("harness/stray.h", "#include <string>\n")
        self.assert_red("harness/run/run.cc", '"harness/stray.h"', "harness/stray.h is in no room")
        self.write("harness/include/attn_diag/harness/novel.h", "#include <string>\n")
        self.assert_red("harness/run/run.cc", '"attn_diag/harness/novel.h"', "novel.h is in no room")

    def test_a_room_has_a_short_readme(self):
        self.write("harness/dump/README.md", "line\n" * 31)
        code, output = check(self.root)
        self.assertEqual(code, 1, output)
        self.assertIn("harness/dump/README.md: has 31 lines", output)

    def test_a_tool_stands_above_all_rooms_and_knows_no_other_tool(self):
        self.write("tools/gpu_check/report.h", "#include <string>\n")
        self.assert_green("tools/attn_diag/show.cc", '"harness/dump/hdf5_file.h"')
        self.assert_red("tools/attn_diag/show.cc", '"tools/gpu_check/report.h"', "must not include tool 'gpu_check'")

    def test_a_tool_must_not_include_what_is_private_to_another_layer(self):
        self.write("reference/rows.h", "#include <string>\n")
        self.write("harness/host/fiber.h", "#include <string>\n")
        self.assert_red("tools/attn_diag/show.cc", '"reference/rows.h"', "private to layer 'reference'")
        self.assert_red("tools/attn_diag/show.cc", '"harness/host/fiber.h"', "private to layer 'host'")

    def test_what_times_kernels_is_not_for_tests(self):
        self.assert_green("harness/timing/rows_bench.cc", "<benchmark/benchmark.h>")
        self.assert_red("harness/timing/bench.cc", "<catch2/catch.hpp>", "must not use Catch2")

    def test_kernel_may_include_cuda(self):
        self.assert_green("kernels/fa1/fa1.cu", "<cuda_runtime.h>")

    def test_only_the_device_file_calls_the_cuda_runtime(self):
        self.assert_green("harness/backends/cuda/device.cc", "<cuda_runtime_api.h>")
        self.assert_red("harness/backends/cuda/gpu.cc", "<cuda_runtime_api.h>", "must not use cuda")

    def test_a_test_may_include_other_layers_and_catch2(self):
        self.write("kernels/fa1/fa1_test.cc",
                   '#include <catch2/catch.hpp>\n#include "attn_diag/harness/run.h"\n')
        self.assertEqual(check(self.root)[0], 0)

    def test_library_code_must_not_use_what_is_for_tests(self):
        self.write("reference/testing/naive.h", "#include <vector>\n")
        self.assert_red("reference/softmax.cc", '"reference/testing/naive.h"', "for tests")

    def test_library_code_must_not_use_catch2(self):
        self.assert_red("reference/softmax.cc", "<catch2/catch.hpp>", "must not use Catch2")

    def test_nothing_to_check_is_not_green(self):
        with tempfile.TemporaryDirectory() as empty:
            self.assertEqual(check(empty)[0], 2)

    def test_this_repository_is_green(self):
        code, output = check(TOOLS.parent)
        self.assertEqual(code, 0, output)


if __name__ == "__main__":
    unittest.main()
