#!/usr/bin/env python3
"""attn-diag sweep as it is called: grids, shards, resuming, merging, and the engines that run shards.

usage: sweep_cli_test.py PATH_TO_ATTN_DIAG [unittest arguments]
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "testing"))
import one_node_slurm  # noqa: E402

PROGRAM = ""
# Variables by which engines say which shard a process is.
ENGINES = ("SLURM_", "OMPI_", "PMI_", "PMIX_", "JOB_COMPLETION_INDEX", "PARALLEL_SEQ")
SMALL = "--kernel fa1 --heads 1 --head-dim 32 --no-sanity"
GRID = f"{SMALL} --seqlen 1:12 --mask none,causal"  # 24 cases
FAULT = "split_k@reduce-counts-l-twice"

# One thread a row; its host code goes wrong at two lengths.
KERNEL = """\
#include <cuda_runtime.h>
#include <csignal>
#include <unistd.h>

__global__ void rows(const float* q, const float* k, const float* v, float* o, float* lse, int n, int dim, float scale) {
  const int row = blockIdx.x, at = blockIdx.y * n * dim;
  float m = -INFINITY, l = 0.0f;
  for (int j = 0; j < n; ++j) {
    float s = 0.0f;
    for (int d = 0; d < dim; ++d) s += q[at + row * dim + d] * k[at + j * dim + d];
    s *= scale;
    const float before = m;
    m = fmaxf(m, s);
    const float alpha = expf(before - m), p = expf(s - m);
    l = l * alpha + p;
    for (int d = 0; d < dim; ++d) o[at + row * dim + d] = (j == 0 ? 0.0f : o[at + row * dim + d] * alpha) + p * v[at + j * dim + d];
  }
  for (int d = 0; d < dim; ++d) o[at + row * dim + d] /= l;
  lse[blockIdx.y * n + row] = m + logf(l);
}

#include <attn_diag/kernels/bring.h>
static void call(const attn_diag::Call& c) {
  const int n = c.seqlen();
  if (n == 7) std::raise(SIGSEGV);
  if (n == 9) pause();
  rows<<<dim3(n, c.batch() * c.heads()), 1, 0, c.stream()>>>(c.q<float>(), c.k<float>(), c.v<float>(), c.o<float>(),
                                                             c.lse(), n, c.head_dim(), c.scale());
}
ATTN_DIAG_EXPORT({.name = "rows", .call = call, .dtypes = fp32, .max_head_dim = 32, .tile = {1, 1}});
"""


def call(args, folder, **environment):
    env = {k: v for k, v in os.environ.items() if not k.startswith(ENGINES)}
    env.update(environment)
    return subprocess.run([PROGRAM, *(args.split() if isinstance(args, str) else args)], cwd=folder, env=env,
                          capture_output=True, text=True, timeout=300)


class Sweep(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="sweep_cli_test.")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def sweep(self, args, code=0, **environment):
        result = call("sweep " + args, self.folder, **environment)
        self.assertEqual(result.returncode, code, result.stdout[:3000] + result.stderr)
        return result

    def merged(self, code=0, args=""):
        return json.loads(self.sweep(f"merge out --json {args}", code).stdout)

    def lines(self, pattern="shard-*.jsonl"):
        """The lines of cases in the files of shards."""
        found = []
        for path in sorted((self.folder / "out").glob(pattern)):
            found += [json.loads(line) for line in path.read_text().splitlines()[1:]]
        return found

    def require_all_once(self, cases=24):
        self.assertEqual(sorted(line["case"] for line in self.lines()), list(range(cases)))
        self.assertEqual(self.merged()["counts"], {"agrees": cases, "missing": 0})


class Cases(Sweep):
    def test_a_grid_is_every_combination_once(self):
        report = json.loads(self.sweep(f"{GRID} --json").stdout)
        self.assertEqual(report["counts"], {"agrees": 24, "missing": 0})
        problems = {(c["problem"]["seqlen_q"], json.dumps(c["problem"]["mask"])) for c in report["cases"]}
        self.assertEqual(len(problems), 24)
        self.assertEqual(len({c["key"] for c in report["cases"]}), 24)
        self.assertEqual({c["flags"]["--seqlen"] for c in report["cases"]}, {str(n) for n in range(1, 13)})

    def test_ranges(self):
        report = json.loads(self.sweep(f"{SMALL} --seqlen 3,4:16:*2,10:12,4 --json").stdout)
        lengths = [int(c["flags"]["--seqlen"]) for c in report["cases"]]
        self.assertEqual(lengths, [3, 4, 8, 16, 10, 11, 12])
        self.assertEqual([c["problem"]["seqlen_k"] for c in report["cases"]], lengths)
        for wrong in ("8:4", "1:8:0", "1:8:*1", "0:8:*2", "a:b", "1:2:3:4", "1:"):
            self.assertIn("--seqlen", self.sweep(f"{SMALL} --seqlen {wrong}", 2).stderr, wrong)

    def test_a_random_draw_is_of_problems_and_depends_on_the_seed(self):
        args = f"--kernel fa1 --no-sanity --head-dim 32 --heads 1:6 --kv-heads 1:6 --seqlen 1:40 --random 20 --json --seed"
        a, same, b = (json.loads(self.sweep(f"{args} {seed}").stdout)["cases"] for seed in (7, 7, 8))
        keys = [c["key"] for c in a]
        self.assertEqual(len(set(keys)), 20)
        self.assertEqual(keys, [c["key"] for c in same])
        self.assertNotEqual(keys, [c["key"] for c in b])
        self.assertTrue(all(c["verdict"] == "agrees" for c in a))  # kv_heads divides heads in all of them

    def test_combinations_that_are_no_problem_are_unsupported(self):
        report = json.loads(self.sweep("--kernel fa1 --no-sanity --head-dim 32 --heads 2,3 --kv-heads 2 --json").stdout)
        self.assertEqual(report["counts"], {"agrees": 1, "unsupported": 1, "missing": 0})
        self.assertIn("KV heads", [c for c in report["cases"] if c["verdict"] == "unsupported"][0]["remark"])
        self.sweep("--kernel fa1 --heads 3 --kv-heads 2", 2)  # nothing was tried

    def test_what_fails_is_shown_smallest_first_and_can_be_hunted(self):
        args = f"--kernel split_k,{FAULT} --no-sanity --heads 1 --head-dim 32 --seqlen 1,20,130 --num-splits 2"
        result = self.sweep(f"{args} --junit out.xml", 1)
        self.assertRegex(result.stdout, r"\A6 cases: \d diverge, \d agree\n")
        self.assertIn(f"kernel: wrong at {FAULT}", result.stdout)
        self.assertIn("never at split_k", result.stdout)
        hunt = [line for line in result.stdout.splitlines() if "Find where" in line][0].split(": ", 1)[1]
        self.assertEqual(subprocess.run(hunt, shell=True, cwd=self.folder, capture_output=True).returncode, 1)
        suite = xml.etree.ElementTree.parse(self.folder / "out.xml").getroot()
        suite = suite if suite.tag == "testsuite" else suite[0]
        self.assertEqual(suite.get("tests"), "6")
        self.assertEqual(int(suite.get("failures")), len(suite.findall("testcase/failure")))
        self.assertGreater(int(suite.get("failures")), 0)

    def test_words_that_are_no_values_are_refused_before_anything_runs(self):
        for args, said in ((f"{SMALL} --dtype fp17", "--dtype takes"), (f"{SMALL} --mask cosal", "--mask takes"),
                           (f"{SMALL} --inputs randm", "--inputs takes"), ("--kernel no_such", "no_such"),
                           (f"{SMALL} --schedule forwards", "--schedule"), ("--seqlen 1:4", "--kernel"),
                           (f"{SMALL} --random 0", "--random"), (f"{SMALL} --devices all", "--jobs"),
                           (f"{SMALL} --shard 9/8 -o out", "--shard takes"), (f"{SMALL} --shard 1/2", "-o DIR"),
                           ("merge nothing", "sweep.json"), ("murge out", "merge DIR"),
                           (f"{SMALL} --head 3", "all is judged")):
            self.assertIn(said, self.sweep(args, 2).stderr, args)

    def test_schedules_and_jobs(self):
        report = json.loads(self.sweep(f"{SMALL} --seqlen 5:9 --schedule forward,reverse,seed:3 --jobs 3 --json").stdout)
        self.assertEqual(report["counts"], {"agrees": 15, "missing": 0})
        self.assertEqual({c["schedule"] for c in report["cases"]}, {"forward", "reverse", "seed:3"})


class Shards(Sweep):
    def test_shards_are_the_sweep(self):
        for i in (1, 2, 3):
            self.assertIn(f"Shard {i}/3, 8 cases", self.sweep(f"{GRID} -o out --shard {i}/3").stdout)
        self.require_all_once()

    def test_a_shard_is_asked_whether_it_is_done_and_merge_for_the_verdict(self):
        args = f"--kernel {FAULT} --no-sanity --heads 1 --head-dim 32 --seqlen 20,130 --num-splits 2 -o out --shard"
        self.assertIn("1 diverges", self.sweep(f"{args} 1/2").stdout)
        self.assertEqual(self.merged(2)["missing_shards"], [{"shard": "2/2", "cases": 1, "missing": 1}])
        self.sweep(f"{args} 2/2")
        self.assertEqual(self.merged(1)["counts"], {"diverges": 2, "missing": 0})

    def test_missing_shards_and_cases_are_named(self):
        self.sweep(f"{GRID} -o out --shard 1/3")
        path = next((self.folder / "out").glob("shard-*.jsonl"))
        kept = path.read_text().splitlines(keepends=True)[:-2]
        path.write_text("".join(kept) + '{"case": 3, "ver')
        result = self.sweep("merge out", 2)
        self.assertIn("18 are missing", result.stdout)
        self.assertIn("Missing: 2 of the 8 cases of shard 1/3, which did not come to its end", result.stdout)
        self.assertIn("Missing: all of the 8 cases of shard 2/3", result.stdout)
        self.assertIn("Half a line at the end of", result.stdout)
        finish = [line for line in result.stdout.splitlines() if "Run the rest" in line][0].split(": ", 1)[1]
        self.assertTrue(finish.endswith("sweep -o out --shard 1/3"), finish)
        self.assertIn("6 cases had been run before", call(finish.split()[1:], self.folder).stdout)
        for i in (2, 3):
            self.sweep(f"-o out --shard {i}/3")
        self.require_all_once()

    def test_the_rest_can_be_run_in_other_parts(self):
        self.sweep(f"{GRID} -o out --shard 2/3")
        self.assertIn("8 cases had been run before", self.sweep("-o out").stdout)
        self.require_all_once()

    def test_a_shard_that_runs_twice_counts_once(self):
        self.sweep(f"{GRID} -o out --shard 1/1")
        again = self.folder / "out" / "shard-1-of-2.jsonl"
        shutil.copy(self.folder / "out" / "shard-1-of-1.jsonl", again)
        report = self.merged()
        self.assertEqual((report["counts"], report["repeated"]), ({"agrees": 24, "missing": 0}, 24))
        again.write_text(again.read_text().replace('"verdict":"agrees"', '"verdict":"diverges"', 1))
        self.assertEqual(len(self.merged(2)["contradicted"]), 1)

    def test_another_sweep_is_not_mixed_in(self):
        self.sweep(f"{GRID} -o out --shard 1/3")
        self.assertIn("holds another sweep: --seqlen was 1:12 there and is 1:13 here",
                      self.sweep(f"{GRID.replace('1:12', '1:13')} -o out", 2).stderr)
        self.assertIn("--heads is part of what out says", self.sweep("-o out --heads 3", 2).stderr)

    def test_merge_writes_all_lines_and_junit(self):
        for i in (1, 2):
            self.sweep(f"{GRID} -o out --shard {i}/2")
        self.sweep("merge out -o all.jsonl --junit all.xml")
        lines = [json.loads(line) for line in (self.folder / "all.jsonl").read_text().splitlines()]
        self.assertEqual([line["case"] for line in lines], list(range(24)))
        self.assertEqual((self.folder / "all.xml").read_text().count("<testcase"), 24)

    def test_a_case_that_crashes_or_does_not_end_is_one_that_failed(self):
        (self.folder / "mine.cu").write_text(KERNEL)
        built = call("build mine.cu -o mine.so --no-nvcc --no-lockstep", self.folder)
        self.assertEqual(built.returncode, 0, built.stderr)
        report = json.loads(self.sweep("--kernel ./mine.so --dtype fp32 --heads 1 --head-dim 8 --seqlen 1:12 "
                                       "--no-sanity --timeout 1 --json -o out", 2).stdout)
        verdicts = {int(c["flags"]["--seqlen"]): c for c in report["cases"]}
        self.assertEqual({n: c["verdict"] for n, c in verdicts.items()},
                         {n: "failed" if n in (7, 9) else "agrees" for n in range(1, 13)})
        self.assertIn("signal 11", verdicts[7]["remark"])
        self.assertIn("did not end within 1 s", verdicts[9]["remark"])
        # Built anew: what came of the other build is not mixed with this.
        (self.folder / "mine.cu").write_text(KERNEL.replace("n == 7", "n == 8"))
        built = call("build mine.cu -o mine.so --no-nvcc --no-lockstep", self.folder)
        self.assertEqual(built.returncode, 0, built.stderr)
        self.assertIn("built anew", self.sweep("-o out", 2).stderr)


class Killed(Sweep):
    """kill -9 at any moment: nothing is lost, nothing counted twice."""

    def test_a_shard_that_is_killed_goes_on_where_it_was(self):
        args = f"sweep {SMALL} --seqlen 1:200 --mask none,causal -o out --quiet".split()
        environment = {k: v for k, v in os.environ.items() if not k.startswith(ENGINES)}
        kills = 0
        # How far a run comes before it is killed is up to the machine, so the last one is not killed.
        for run in range(20):
            process = subprocess.Popen([PROGRAM, *args], cwd=self.folder, start_new_session=True,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
            before = len(self.whole_lines())
            while run < 19 and process.poll() is None and len(self.whole_lines()) < before + 3:
                time.sleep(0.002)
            if run < 19 and process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)
                kills += 1
            process.wait()
            if process.returncode == 0:
                break
        self.assertGreater(kills, 0, "nothing was killed")
        self.assertEqual(process.returncode, 0)
        self.require_all_once(400)

    def whole_lines(self):
        path = self.folder / "out" / "shard-1-of-1.jsonl"
        return path.read_bytes().splitlines() if path.exists() else []


class Engines(Sweep):
    def test_each_engine_by_its_variables(self):
        for name, environments, more in (
                ("slurm array", [{"SLURM_ARRAY_TASK_ID": str(i), "SLURM_ARRAY_TASK_MIN": "1",
                                  "SLURM_ARRAY_TASK_MAX": "3", "SLURM_ARRAY_TASK_COUNT": "3"} for i in (1, 2, 3)], ""),
                ("mpich", [{"PMI_RANK": str(i), "PMI_SIZE": "3"} for i in range(3)], ""),
                ("k8s", [{"JOB_COMPLETION_INDEX": str(i)} for i in range(3)], "--shards 3"),
                ("parallel", [{"PARALLEL_SEQ": str(i)} for i in (1, 2, 3)], "--shards 3")):
            with self.subTest(name):
                shutil.rmtree(self.folder / "out", ignore_errors=True)
                for i, environment in enumerate(environments):
                    self.assertIn(f"Shard {i + 1}/3", self.sweep(f"{GRID} -o out {more}", **environment).stdout)
                self.require_all_once()
        self.assertIn("--shards N", self.sweep(f"{GRID} -o out", 2, JOB_COMPLETION_INDEX="0").stderr)

    def test_job_files(self):
        args = f"{GRID} -o out --shards 3 --print"
        slurm = self.sweep(f"{args} slurm").stdout
        self.assertIn("#SBATCH --array=1-3\n", slurm)
        (self.folder / "job.sh").write_text(slurm)
        for i in ("1", "2", "3"):
            result = subprocess.run(["bash", "job.sh"], cwd=self.folder, env={**os.environ, "SLURM_ARRAY_TASK_ID": i},
                                    capture_output=True, text=True, timeout=300)
            self.assertEqual(result.returncode, 0, result.stderr)
        self.require_all_once()
        self.assertIn("mpirun -n 3 ", self.sweep(f"{args} mpi").stdout)
        k8s = self.sweep(f"{args} k8s").stdout
        self.assertIn("completionMode: Indexed\n  completions: 3\n", k8s)
        self.assertIn("--shards 3", k8s)
        self.assertIn("--shards N", self.sweep(f"{GRID} -o out --print slurm", 2).stderr)
        self.assertIn("--print takes slurm, mpi or k8s", self.sweep(f"{args} pbs", 2).stderr)

    def test_mpirun(self):
        if shutil.which("mpirun") is None:
            self.skipTest("SKIP: no mpirun (Debian: openmpi-bin)")
        environment = {k: v for k, v in os.environ.items() if not k.startswith(ENGINES)}
        environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        result = subprocess.run(["mpirun", "-n", "4", "--oversubscribe", PROGRAM, "sweep", *GRID.split(), "-o", "out"],
                                cwd=self.folder, env=environment, capture_output=True, text=True, timeout=300)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len(list((self.folder / "out").glob("shard-?-of-4.jsonl"))), 4)
        self.require_all_once()

    def test_slurm_array(self):
        """A Slurm of one node, started for this test alone, and an array job of three tasks."""
        if not one_node_slurm.available():
            self.skipTest("SKIP: no Slurm (Debian: slurm-wlm, munge)")
        if os.geteuid() != 0:
            self.skipTest("SKIP: a Slurm of one node is started as root only")
        with one_node_slurm.OneNode(self.folder / "slurm") as cluster:
            (self.folder / "job.sh").write_text(self.sweep(f"{GRID} -o out --shards 3 --print slurm").stdout)
            cluster.run_job(self.folder / "job.sh", self.folder)
        self.assertEqual(len(list((self.folder / "out").glob("shard-?-of-3.jsonl"))), 3)
        self.require_all_once()

    def test_gnu_parallel(self):
        version = shutil.which("parallel") and subprocess.run(["parallel", "--version"], capture_output=True, text=True)
        if not version or "GNU parallel" not in version.stdout:
            self.skipTest("SKIP: no GNU parallel")
        result = subprocess.run(["parallel", "-j2", "-N0", f"{PROGRAM} sweep {GRID} -o out --shards 3", ":::", "1", "2", "3"],
                                cwd=self.folder, capture_output=True, text=True, timeout=300)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.require_all_once()


if __name__ == "__main__":
    PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    os.environ["ATTN_DIAG_HISTORY"] = "0"
    unittest.main()
