#!/usr/bin/env python3
"""Drafts adapters of sources in many styles, builds and runs them, as a user would.

usage: adapt_cli_test.py ATTN_DIAG STYLES EXAMPLES [NAME...]
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(sys.argv[1]).resolve()
STYLES = pathlib.Path(sys.argv[2]).resolve()
EXAMPLES = pathlib.Path(sys.argv[3]).resolve()
ZOO = EXAMPLES.parents[1] / "fixtures" / "zoo"

# What is run of each, and what the draft must say.
CASES = {
    "plain_launcher": ("--dtype fp16 --mask none,causal --seqlen 48", ["masks = none | causal"]),
    "device_prefixes": ("--dtype fp32 --layout BSHD --seqlen 33", ["layouts = bshd", "Lse::kNone"]),
    "template_dispatch": ("--dtype fp16 --mask none,causal --seqlen 33",
                          ["fa::run_fwd<half, 32, true>", "head_dims = {32, 64}"]),
    "params_struct": ("--dtype fp16 --layout BHSD,BSHD --kv-heads 1 --seqlen 33 --mask none,causal",
                      ["params.q_ptr = c.q();", "grouped_heads = true", "bhsd | bshd"]),
    "in_main": ("--dtype fp32 --seqlen 40", ["dim3 grid((N + BLOCK_M - 1) / BLOCK_M, batch_size, n_heads);"]),
    "host_pointers": ("--dtype fp32 --seqlen 40", ["host.q<float>()", "host.store();"]),
    "single_head": ("--dtype fp32 --seqlen-q 33 --seqlen-k 40", ["by its place alone", "for (int head"]),
    "bare_kernel": ("--dtype fp16 --seqlen 64", ["<<<grid, block", "const dim3 block(32)"]),
    "gqa_strides": ("--dtype bf16 --layout BHSD,BSHD --kv-heads 1 --seqlen-q 20 --seqlen-k 33",
                    ["c.q_strides().head"]),
    "packed_qkv": ("--dtype fp32 --layout BSHD --mask causal --seqlen 33",
                   ["PackedQkv<float>", "masks = causal"]),
    "workspace": ("--dtype fp32 --seqlen 33", ["scores_buffer(rows * c.seqlen_k())"]),
    "torch_forward": ("--dtype fp32 --seqlen 33", ["attn_diag::torch_q(c)", "store_lse(c, result[1])"]),
}

# Kernels of the zoo: what the draft must say. They are run as the draft's own notes propose.
ZOO_CASES = {
    "last_block_reduce/splitk_last_block.cu": ["workspace_buffer", "Not known: how large 'workspace' must be"],
    "lock_merge/locked_splits.cu": ["DeviceBuffer<char> scratch_buffer(sizeof(float) *"],
    "bf162_warps/bf162_warps.cu": ["layouts = bshd", "dtypes = bf16"],
    "ring_cache/ring_cache.cu": ["masks = causal", "returned false"],
    "mma_flash2/flash2_mma.cu": ["tensor_cores = true", "p_in_input_type = true"],
}


def call(*words, folder):
    return subprocess.run([str(PROGRAM), *map(str, words)], cwd=folder, capture_output=True, text=True)


class Styles(unittest.TestCase):
    def try_style(self, name):
        flags, expected = CASES[name]
        with tempfile.TemporaryDirectory() as folder:
            drafted = call("adapt", STYLES / f"{name}.cu", "-o", "adapter.cu", folder=folder)
            self.assertEqual(drafted.returncode, 0, drafted.stderr)
            self.assertIn("attn-diag build", drafted.stderr)
            text = pathlib.Path(folder, "adapter.cu").read_text()
            for words in expected:
                self.assertIn(words, text)
            built = call("build", STYLES / f"{name}.cu", "--adapter", "adapter.cu", "-o", "mine.so",
                         "--no-nvcc", "--no-lockstep", folder=folder)
            self.assertEqual(built.returncode, 0, built.stderr)
            ran = call("run", "--kernel", "./mine.so", "--batch", 2, "--heads", 2, "--head-dim", 32,
                       *flags.split(), folder=folder)
            self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)


for style in CASES:
    setattr(Styles, "test_" + style, lambda self, name=style: self.try_style(name))


class Zoo(unittest.TestCase):
    def try_kernel(self, source):
        with tempfile.TemporaryDirectory() as folder:
            drafted = call("adapt", ZOO / source, "-o", "adapter.cu", folder=folder)
            self.assertEqual(drafted.returncode, 0, drafted.stderr)
            text = pathlib.Path(folder, "adapter.cu").read_text()
            for words in ZOO_CASES[source]:
                self.assertIn(words, text)
            build, run = (line.split()[1:] for line in drafted.stderr.splitlines() if line.startswith("  attn-diag "))
            built = call(*build, "--no-nvcc", "--no-lockstep", folder=folder)
            self.assertEqual(built.returncode, 0, built.stderr)
            ran = call(*run, "--batch", 2, "--seqlen", 40, folder=folder)
            self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)


for kernel in ZOO_CASES:
    setattr(Zoo, "test_" + kernel.split("/")[0], lambda self, source=kernel: self.try_kernel(source))


class Examples(unittest.TestCase):
    """Those of docs/bring-your-kernel.md, by its commands."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def copy_of(self, example, source="", old="", new=""):
        for path in (EXAMPLES / example).iterdir():
            text = path.read_text()
            if path.name == source:
                self.assertIn(old, text)
                text = text.replace(old, new)
            pathlib.Path(self.folder.name, path.name).write_text(text)

    def call(self, *words):
        return call(*words, folder=self.folder.name)

    def build(self, source, library):
        built = self.call("build", source, "--adapter", "adapter.cu", "-o", library, "--no-nvcc",
                          "--no-lockstep")
        self.assertEqual(built.returncode, 0, built.stderr)

    def test_a_plain_project(self):
        self.copy_of("plain_project")
        self.build("flash.cu", "flash.so")
        ran = self.call("run", "--kernel", "./flash.so", "--head-dim", "32,64", "--seqlen", "33,64",
                        "--mask", "none,causal")
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        refused = self.call("run", "--kernel", "./flash.so:flash", "--head-dim", 48)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("head_dim 48 is not among what it declares: dtype fp16; head_dim 32, 64;",
                      refused.stdout + refused.stderr)
        for listed in (self.call("list", "./flash.so"), self.call("list", "--kernel", "./flash.so:flash")):
            self.assertEqual(listed.returncode, 0, listed.stderr)
            self.assertIn("./flash.so:flash", listed.stdout)
            self.assertIn("declares: dtype fp16; head_dim 32, 64", listed.stdout)

    def test_a_draft_of_the_plain_project_runs_too(self):
        self.copy_of("plain_project")
        self.assertEqual(self.call("adapt", "flash.cu", "-o", "adapter.cu", "--force").returncode, 0)
        self.build("flash.cu", "flash.so")
        ran = self.call("run", "--kernel", "./flash.so", "--seqlen", "33,64", "--mask", "none,causal")
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)

    def test_a_torch_extension(self):
        self.copy_of("torch_extension")
        self.build("attention_ext.cu", "attention_ext.so")
        ran = self.call("run", "--kernel", "./attention_ext.so", "--layout", "BSHD", "--seqlen", "40",
                        "--dtype", "fp16,fp32", "--mask", "none,causal", "--batch", 2)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)

    def test_a_declared_stage_tells_where_an_extension_goes_wrong(self):
        self.copy_of("torch_extension", "attention_ext.cu", "if (key < keys)",
                     "if (key <= keys && key < N)")
        self.build("attention_ext.cu", "attention_ext.so")
        traced = self.call("trace", "--kernel", "./attention_ext.so", "--layout", "BSHD", "--seqlen",
                           "40", "--mask", "causal")
        self.assertEqual(traced.returncode, 1, traced.stderr)
        self.assertIn("DIVERGES: qk diverges first", traced.stdout)
        self.assertIn("fits a mask that is off by one", traced.stdout)


class Command(unittest.TestCase):
    def test_every_style_is_tried(self):
        self.assertEqual({path.stem for path in STYLES.glob("*.cu")}, set(CASES))

    def test_the_draft_goes_to_stdout_and_what_is_said_of_it_to_stderr(self):
        with tempfile.TemporaryDirectory() as folder:
            drafted = call("adapt", STYLES / "plain_launcher.cu", folder=folder)
            self.assertTrue(drafted.stdout.startswith("// Drafted by attn-diag adapt"))
            for title in ("Found", "Guessed", "Check first", "Also looked at", "Next"):
                self.assertIn(title, drafted.stderr)
            quiet = call("adapt", STYLES / "plain_launcher.cu", "--quiet", folder=folder)
            self.assertEqual(quiet.stderr, "")
            self.assertEqual(quiet.stdout, drafted.stdout)

    def test_json_has_the_draft_and_the_notes(self):

        with tempfile.TemporaryDirectory() as folder:
            draft = json.loads(call("adapt", STYLES / "plain_launcher.cu", "--json", folder=folder).stdout)
            self.assertEqual(draft["kernel"], "plain_launcher")
            self.assertIn("ATTN_DIAG_EXPORT", draft["adapter"])
            self.assertEqual([f["chosen"] for f in draft["functions"]], [True, False])
            self.assertTrue(draft["found"] and draft["guessed"] and draft["check"])

    def test_a_file_that_exists_is_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            kept = pathlib.Path(folder, "adapter.cu")
            kept.write_text("mine")
            refused = call("adapt", STYLES / "plain_launcher.cu", "-o", "adapter.cu", folder=folder)
            self.assertEqual(refused.returncode, 2)
            self.assertIn("--force", refused.stderr)
            self.assertEqual(kept.read_text(), "mine")
            self.assertEqual(call("adapt", STYLES / "plain_launcher.cu", "-o", "adapter.cu", "--force",
                                  folder=folder).returncode, 0)

    def test_what_cannot_be_drafted_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            missing = call("adapt", "nowhere.cu", folder=folder)
            self.assertEqual(missing.returncode, 2)
            self.assertIn("cannot be read", missing.stderr)
            self.assertEqual(call("adapt", folder=folder).returncode, 2)
            two = call("adapt", STYLES / "in_main.cu", STYLES / "workspace.cu", folder=folder)
            self.assertIn("one source", two.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
