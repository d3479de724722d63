#!/usr/bin/env python3
"""Drafts adapters of sources in many styles, builds and runs them, as a user would.

usage: adapt_cli_test.py ATTN_DIAG STYLES EXAMPLES [NAME... | --list GROUP...]
"""
import json
import pathlib
import shutil
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

# Written as their users write them, with a bug that a draft must not hide: what the draft must say, and
# (old, new, ...) of the bug. Right and broken are run as the draft's own notes propose.
WHOLE_CASES = {
    "fixed_length": (["max_seqlen_k = 96"], ("acc += p *", "acc += 2.0f * p *")),
    "fixed_macros": (["max_seqlen_k = 96", "for (int head = 0;"], None),
    "narrow_partials": (["split_per_tile = true", "partial_in_input_type = true"],
                        ("o_sum += w * static_cast<float>(po[d]);", "o_sum += w * l_s * static_cast<float>(po[d]);")),
    "narrow_sums": (["split_per_tile = true", "partial_stats_in_input_type = true"], None),
    "product_qk": (["part = Part::kScores", "c.scores<half>()", "s_in_input_type = true", "Scores::kUnscaled"],
                   ("K[(bh * N + j) * d + x]", "K[(bh * N + (j ^ 1)) * d + x]")),
    "product_causal_qk": (["part = Part::kScores", "c.scores<float>()", "c.scale()", "none | causal"],
                          ("s * scale", "s * scale * scale")),
    "product_pv": (["part = Part::kFromProbs", "c.probs<half>()", "p_in_input_type = true"],
                   ("j < seqlen; ++j)", "j < seqlen - 1; ++j)")),
    "softmax_v": (["part = Part::kFromScores", "c.scores<float>()", "Lse::kNone"], ("acc / sum", "acc / (sum + 1.f)")),
    "half_scores": (["s_in_input_type = true", "p_in_input_type = true"], ("- mx) / sum)", "- mx) / (sum + 1.f))")),
    "wide_output": (["c.o<float>()", "dtypes = fp16"], ("l = l * a + p", "l = l + p")),
    "int8_tokens": (["k_codes = {CodeType::kInt8, ScalePer::kToken}", "v_coded.scales<float>()"],
                    ("s *= ks[j]", "s *= ks[j & ~1]")),
    "fp8_scalars": (["q_codes = {CodeType::kE4m3, ScalePer::kTensor}", "q_coded.scale()", "dtypes = bf16"],
                    ("softmax_scale * descale_q * descale_k", "softmax_scale * descale_q * descale_q")),
    "uint8_zeros": (["v_codes = {CodeType::kUint8, ScalePer::kHead}", "k_coded.zeros<half>()"],
                    ("vz = __half2float(v_zero[kv_head])", "vz = __half2float(k_zero[kv_head])")),
    "dp4a_qk": (["q_codes = {CodeType::kInt8, ScalePer::kBatchHead}", "reinterpret_cast<char4*>"],
                ("q_scale[idx] * k_scale[idx]", "q_scale[idx] * k_scale[head]")),
    "cpu_reference": (["layouts = bshd", "code beside it that is no kernel"],  # broken: heads before queries
                      ("+ ((size_t)b * S * H + h) * D;", "+ ((size_t)b * H + h) * S * D;",
                       "const int rs = H * D;", "const int rs = D;")),
    "launched_by_test": (["dim3 block(32, warps);"], ("j <= row", "j < row + 1 && j < 60")),
    "launched_by_bench": (["const int num_heads = c.heads();", "BLOCK_Q, smem_size"], None),
    "loop_in_main": (["for (int bh = 0; bh < batch * heads; ++bh) {", "c.q<float>() + off"], None),
    "two_in_main": (["flash_attention<<<", "naive_attention() would do too"], ("l_i = l_i * alpha + p", "l_i = l_i + p")),
    "launch_by_address": (["sdpa_rows<<<dim3(seqlen, batch * num_heads)"], None),
    "fixed_in_main": (["max_seqlen_k = 80", "constexpr int D = 32;", "const int B = c.batch();"], None),
    "fixed_heads": (["c.refuse(", "grouped_heads = true"],
                    ("kv_h = h / (NUM_HEADS / NUM_KV_HEADS)", "kv_h = h % NUM_KV_HEADS")),
    "heads_alone": (["c.q_strides().batch", "layouts = bshd"], None),
    "groups_alone": (["c.k_strides().batch", "c.heads(), c.kv_heads()"],
                     ("h / (n_heads / n_kv_heads)", "h % n_kv_heads")),
    "scale_pointer": (["sm_scale_buffer.fill(c.scale());"], None),
    "scaled_query": (["c.scale() != 1.0f"], ("sum / l", "sum / (l + 1.f)")),
    "launched_in_template": (["return run_test_launches<true>(c);", "layouts = bshd", "none | causal"],
                             ("((b * T + i) * H + h) * D; }", "((b * H + h) * T + i) * D; }")),
    "one_query": (["c.seqlen_q() != 1", "c.kv_heads() != 1"],
                  ("k_cache + (size_t)b * seq_len", "k_cache + (size_t)b * (seq_len - 1)")),
    "batch_offsets": (["cu_seqlens_buffer.data(), c.batch(), c.seqlen()", "layouts = bshd"],
                      ("v + (size_t)(first + j) * row + h * head_dim", "v + (size_t)(first + j) * row + h")),
    "window_of_one_width": (["masks = window", "c.window_left() + 1"], ("j <= i; ++j", "j < i + 1 && j < 9; ++j")),
    "sizes_in_macro": (["c.batch() != 2", "c.heads() != 4"],
                       ("((((b)*SEQ + (s)) * HEADS + (h)) * DIM + (d))",
                        "((((b) * HEADS + (h)) * SEQ + (s)) * DIM + (d))")),
    "sizes_in_struct": (["none | causal", "grouped_heads = true", "other_seqlen_k = true"],
                        ("((size_t)(batch * cfg.num_q_heads + head) * cfg.q_len + token)",
                         "((size_t)(batch * cfg.q_len + token) * cfg.num_q_heads + head)")),
    "fixed_splits": (["num_splits = 3", "partial_in_input_type = true", "tile = {64, 1}"],
                     ("x.y / l * float", "x.y / (l + 1.f) * float")),
    "packed_width": (["PackedQkv<float>", "masks = causal"], ("att_bth[t2] * value_t2[i]", "att_bth[t2] * value_t2[0]")),
    "returned_log2": (["Lse::kBase2", "store_lse(c, std::get<1>(result))"],
                      ("acc[d] = acc[d] * alpha + p", "acc[d] = acc[d] + p")),
    "axes_in_comment": (["layouts = bshd", "as a comment says"],
                        ("(size_t)batch * seqlen * stride + head * D", "((size_t)batch * num_heads + head) * seqlen * D",
                         "const int stride = num_heads * D;", "const int stride = D;")),
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


class Whole(unittest.TestCase):
    def run_of(self, text, name, folder):
        pathlib.Path(folder, name + ".cu").write_text(text)
        drafted = call("adapt", name + ".cu", "-o", "adapter.cu", "--force", folder=folder)
        self.assertEqual(drafted.returncode, 0, drafted.stderr)
        build, run = (line.split()[1:] for line in drafted.stderr.splitlines() if line.startswith("  attn-diag "))
        built = call(*build, "--no-nvcc", "--no-lockstep", folder=folder)
        self.assertEqual(built.returncode, 0, built.stderr)
        return call(*run, "--no-history", folder=folder), pathlib.Path(folder, "adapter.cu").read_text()

    def try_source(self, name):
        expected, bug = WHOLE_CASES[name]
        source = (STYLES / f"{name}.cu").read_text()
        with tempfile.TemporaryDirectory() as folder:
            ran, draft = self.run_of(source, name, folder)
            for words in expected:
                self.assertIn(words, draft)
            self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
            if bug is None:
                return
            broken = source
            for right, wrong in zip(bug[0::2], bug[1::2]):
                self.assertIn(right, broken)
                broken = broken.replace(right, wrong)
            ran, _ = self.run_of(broken, name, folder)
            self.assertEqual(ran.returncode, 1, ran.stdout + ran.stderr)

    def test_a_double_counted_l_in_narrow_partials_is_named_by_the_draft_alone(self):
        _, bug = WHOLE_CASES["narrow_partials"]
        source = (STYLES / "narrow_partials.cu").read_text().replace(*bug)
        with tempfile.TemporaryDirectory() as folder:
            self.run_of(source, "narrow_partials", folder)
            named = call("diagnose", "--kernel", "./narrow_partials.so", "--seqlen", 100, "--no-history",
                         folder=folder)
            self.assertIn("NAMED: combine-counts-l-twice", named.stdout, named.stderr)

    def test_a_verdict_says_that_the_adapter_is_a_draft_until_it_is_none(self):
        source = (STYLES / "product_qk.cu").read_text()
        with tempfile.TemporaryDirectory() as folder:
            ran, draft = self.run_of(source, "product_qk", folder)
            said = "The adapter is attn-diag adapt's draft, in which "
            self.assertIn(said, " ".join(ran.stdout.split()))
            several = call("run", "--kernel", "./product_qk.so", "--dtype", "fp32", "--seqlen", "16,32", "--no-history",
                           folder=folder)
            self.assertEqual(" ".join(several.stdout.split()).count(said), 1, several.stdout + several.stderr)
            mark = next(line for line in draft.splitlines() if line.startswith("ATTN_DIAG_DRAFT("))
            pathlib.Path(folder, "adapter.cu").write_text(draft.replace(mark, ""))
            built = call("build", "product_qk.cu", "--adapter", "adapter.cu", "-o", "read.so", "--no-nvcc",
                         "--no-lockstep", folder=folder)
            self.assertEqual(built.returncode, 0, built.stderr)
            ran = call("run", "--kernel", "./read.so", "--dtype", "fp32", "--no-history", folder=folder)
            self.assertNotIn(said, " ".join((ran.stdout + ran.stderr).split()))

    def test_a_scale_that_is_nowhere_is_a_mistake_unless_a_comment_says_that_q_has_it(self):
        source = (STYLES / "scaled_query.cu").read_text().replace("q is prescaled; ", "")
        with tempfile.TemporaryDirectory() as folder:
            ran, draft = self.run_of(source, "unscaled", folder)
            self.assertNotIn("c.scale() != 1.0f", draft)
            self.assertEqual(ran.returncode, 1, ran.stdout + ran.stderr)
            self.assertIn("takes q multiplied by the softmax scale already", " ".join(ran.stdout.split()))

    def test_quantised_tensors_are_refused_in_words(self):
        with tempfile.TemporaryDirectory() as folder:
            refused = call("adapt", STYLES / "quantised_cache.cu", folder=folder)
            self.assertEqual(refused.returncode, 2)
            self.assertIn("K is of uint8_t, quantised", refused.stderr)


for style in WHOLE_CASES:
    setattr(Whole, "test_" + style, lambda self, name=style: self.try_source(name))


class Unseen(unittest.TestCase):
    """Sources of strangers (harness/toolchain/adapt/testing/unseen), all right: drafts that agree."""

    def try_source(self, source):
        with tempfile.TemporaryDirectory() as folder:
            ran, _ = Whole.run_of(self, source.read_text(), source.stem, folder)
            self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)


UNDRAFTED = "second_12", "second_16", "second_22"  # see README.md there
for stranger in sorted((STYLES.parent / "unseen").glob("*/??_*.cu")):
    number = f"{stranger.parent.name}_{stranger.name[:2]}"
    if number not in UNDRAFTED and not stranger.stem.endswith(".adapter"):
        setattr(Unseen, "test_" + number, lambda self, source=stranger: self.try_source(source))


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
            more = [word for flag, value in (("--batch", 2), ("--seqlen", 40)) if flag not in run for word in (flag, value)]
            ran = call(*run, *more, folder=folder)
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


UNSAID = """
#include <cuda_runtime.h>
__global__ void rows(const float* q, const float* k, const float* v, float* o, int s, int d) {
  const int pitch = gridDim.y * d, first = blockIdx.z * s * pitch + blockIdx.y * WHERE;
  const float* qi = q + first + blockIdx.x * STEP;
  extern __shared__ float p[];
  float m = -INFINITY, l = 0.f;
  for (int j = 0; j < s; ++j) {
    float x = 0.f;
    for (int c = 0; c < d; ++c) x += qi[c] * k[first + j * STEP + c];
    p[j] = x * rsqrtf(float(d));
    m = fmaxf(m, p[j]);
  }
  for (int j = 0; j < s; ++j) l += expf(p[j] - m);
  for (int c = 0; c < d; ++c) {
    float sum = 0.f;
    for (int j = 0; j < s; ++j) sum += expf(p[j] - m) * v[first + j * STEP + c];
    o[first + blockIdx.x * STEP + c] = sum / l;
  }
}
void attention(const float* q, const float* k, const float* v, float* o, int batch, int heads, int seqlen, int dim) {
  rows<<<dim3(seqlen, heads, batch), 1, seqlen * sizeof(float)>>>(q, k, v, o, seqlen, dim);
}
"""


class Try(unittest.TestCase):
    """Of what nobody says, both are tried."""

    def tried(self, where, step, edit=("", "")):
        with tempfile.TemporaryDirectory() as folder:
            text = UNSAID.replace("WHERE", where).replace("STEP", step).replace(*edit)
            pathlib.Path(folder, "mine.cu").write_text(text)
            drafted = call("adapt", "mine.cu", "--try", "-o", "adapter.cu", folder=folder)
            self.assertEqual(drafted.returncode, 0, drafted.stderr)
            return drafted.stderr, pathlib.Path(folder, "adapter.cu").read_text()

    def test_the_layout_that_agrees_is_declared(self):
        said, draft = self.tried("d", "pitch")
        self.assertIn("tried: diverges in BHSD, agrees in BSHD", said)
        self.assertIn("layouts = bshd", draft)
        said, draft = self.tried("s * d", "d")
        self.assertIn("tried: agrees in BHSD", said)
        self.assertNotIn("layouts = bshd", draft)

    def test_a_wrong_kernel_agrees_in_neither(self):
        said, _ = self.tried("d", "pitch", ("sum / l", "sum / (l + 1.f)"))
        self.assertIn("tried: diverges in BHSD, diverges in BSHD", said)
        self.assertIn("Check first", said[:said.index("tried:")])

    def test_a_layout_that_is_said_is_not_tried_otherwise(self):
        said, draft = self.tried("d", "pitch", ("__global__", "// q, k, v, o: [B, H, S, D]\n__global__"))
        self.assertIn("tried: diverges in BHSD\n", said)
        self.assertNotIn("layouts = bshd", draft)

    def test_a_layout_may_be_given(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "mine.cu").write_text(UNSAID)
            given = call("adapt", "mine.cu", "--layout", "BSHD", folder=folder)
            self.assertIn("layouts = bshd", given.stdout)
            refused = call("adapt", "mine.cu", "--layout", "SBHD", folder=folder)
            self.assertEqual(refused.returncode, 2)
            self.assertIn("expected BHSD or BSHD", refused.stderr)


class Command(unittest.TestCase):
    def test_every_style_is_tried(self):
        self.assertEqual({path.stem for path in STYLES.glob("*.cu")},
                         set(CASES) | set(WHOLE_CASES) | {"quantised_cache"})

    def test_the_draft_goes_to_stdout_and_what_is_said_of_it_to_stderr(self):
        with tempfile.TemporaryDirectory() as folder:
            drafted = call("adapt", STYLES / "plain_launcher.cu", folder=folder)
            self.assertTrue(drafted.stdout.startswith("// Drafted by attn-diag adapt"))
            for title in ("Found", "Guessed", "Check first", "Also looked at", "Next"):
                self.assertIn(title, drafted.stderr)
            quiet = call("adapt", STYLES / "plain_launcher.cu", "--quiet", folder=folder)
            self.assertEqual(quiet.stderr, "")
            self.assertEqual(quiet.stdout, drafted.stdout)

    def test_names_of_any_characters_give_drafts_that_compile_and_lines_for_the_shell(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in "a b.cu", "it's $HOME.cu", 'quo"te.cu', "line\nend\x1b[2J.cu":
                shutil.copy(STYLES / "plain_launcher.cu", pathlib.Path(folder, name))
                shutil.copy(STYLES / "row.cuh", folder)
                drafted = call("adapt", name, "-o", "adapter.cu", "--force", folder=folder)
                self.assertEqual(drafted.returncode, 0, drafted.stderr)
                self.assertNotIn("\x1b", drafted.stderr)
                build, run = drafted.stderr.splitlines()[-2:]
                self.assertTrue(run.startswith("  attn-diag run --kernel "), run)
                words = subprocess.run(["bash", "-c", f"printf '%s\\0' {build}"], text=True, check=True,
                                       stdout=subprocess.PIPE).stdout.split("\0")[:-1]
                built_from = ["adapter.cu"] if "\n" in name else [name, "--adapter", "adapter.cu"]
                self.assertEqual(words, ["attn-diag", "build", *built_from, "-o", name.replace(".cu", ".so")])
                if name in ("a b.cu", "it's $HOME.cu"):
                    continue  # the compiler sees nothing new in these
                built = call(*words[1:], "--no-nvcc", "--no-lockstep", folder=folder)
                self.assertEqual(built.returncode, 0, built.stderr)

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


def names_of(group):
    return [f"{group}.{name}" for name in unittest.defaultTestLoader.getTestCaseNames(globals()[group])]


if __name__ == "__main__":
    if sys.argv[4:5] == ["--list"]:
        print("\n".join(name for group in sys.argv[5:] for name in names_of(group)))
        sys.exit()
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
