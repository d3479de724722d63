#!/usr/bin/env python3
"""Traces kernels as users write them to the line: right ones, and copies with one edit.

usage: lines_cli_test.py ATTN_DIAG [--list | --only TITLE | --short | unittest arguments]
"""
import json
import pathlib
import shutil
import subprocess
import sys
import unittest

from testing.command_test import folder_for, long, main

PROGRAM = pathlib.Path(sys.argv[1]).resolve()
FIXTURES = pathlib.Path(__file__).resolve().parents[2] / "fixtures"
UNSEEN = FIXTURES.parent / "harness" / "toolchain" / "adapt" / "testing" / "unseen"
sys.path.insert(0, str(FIXTURES / "zoo"))
import zoo  # noqa: E402


def several(file, *edits):
    """Several edits of a file of the zoo, as one: the whole of it, before and after."""
    before = after = (FIXTURES / "zoo" / file).read_text()
    for old, new in edits:
        if old not in after:
            raise SystemExit(f"{old!r} is not in {file}")
        after = after.replace(old, new, 1)
    return before, after


# o is kept normalised, and divided by the sum of one tile.
ADDS = (
    "    for (int j = 0; j < count; ++j) {\n"
    "      const float pj = __shfl_sync(kFull, p, j);\n"
    "      for (int i = 0; i < kPerLane; ++i) acc[i] += pj * __ldg(&v[kv_at + (first + j) * HEAD_DIM + lane + 32 * i]);\n"
    "    }\n"
)
NORMALISED = (
    "    const float alpha = __expf(m - m_new);\n"
    "    l = l * alpha + warp_sum(p);\n"
    "    for (int i = 0; i < kPerLane; ++i) acc[i] *= alpha;\n"
    f"{ADDS}    m = m_new;\n  }}\n"
    "  for (int i = 0; i < kPerLane; ++i) out[q_at + lane + 32 * i] = acc[i] / l;\n",
    "    const float alpha = __expf(m - m_new), l_before = l, l_tile = warp_sum(p);\n"
    "    l = l * alpha + l_tile;\n"
    "    for (int i = 0; i < kPerLane; ++i) acc[i] *= alpha * l_before;\n"
    f"{ADDS}    for (int i = 0; i < kPerLane; ++i) acc[i] /= l_tile;\n"
    "    m = m_new;\n  }\n"
    "  for (int i = 0; i < kPerLane; ++i) out[q_at + lane + 32 * i] = acc[i];\n",
)

# Whole pages are gone over, and one key behind the last is taken for one.
ONE_TOO_MANY = (
    "for (int t = 0; t < tokens; ++t) {\n      float s = q_lane * k_cache[base + t * HEAD_SIZE + lane];\n"
    "      for (int mask = 16; mask >= 1; mask /= 2) s += __shfl_xor_sync(0xffffffff, s, mask);\n      s *= scale;",
    "for (int t = 0; t < PAGE_SIZE; ++t) {\n      const bool valid = t <= tokens;\n"
    "      float dot = valid ? q_lane * k_cache[base + t * HEAD_SIZE + lane] : 0.f;\n"
    "      for (int mask = 16; mask >= 1; mask /= 2) dot += __shfl_xor_sync(0xffffffff, dot, mask);\n"
    "      float s;\n      s = valid ? dot * scale : -INFINITY;",
)

# Kernel, case (its flags, or which of the kernel's own), what is edited and into what, and where in the list of suspects
# the line must be; `sure`: it is claimed.
# Scores are stored where the mask lets them; the other loops have a mask of their own, by the key's place in its tile.
MASKED_LATER = (
    "      S[tx * (Bc + PAD) + c] = visible ? s * scale : -INFINITY;\n"
    "    }\n"
    "    __syncthreads();\n"
    "    float m_new = m;  // all four threads of a row compute the same maximum and sum\n"
    "    for (int c = 0; c < Bc; c++) m_new = fmaxf(m_new, S[tx * (Bc + PAD) + c]);\n"
    "    float base = m_new == -INFINITY ? 0.f : m_new;\n"
    "    float alpha = expf(m - base), sum = 0.f;\n"
    "    for (int c = 0; c < Bc; c++) sum += expf(S[tx * (Bc + PAD) + c] - base);\n"
    "    for (int x = ty; x < d; x += blockDim.y) {\n"
    "      float acc = Oi[tx * ld + x] * alpha;\n"
    "      for (int c = 0; c < Bc; c++) acc += expf(S[tx * (Bc + PAD) + c] - base) * Vj[c * ld + x];\n",
    "      if (visible) S[tx * (Bc + PAD) + c] = s * scale;\n"
    "    }\n"
    "    __syncthreads();\n"
    "    float m_new = m;\n"
    "    const int row = row0 + tx;\n"
    "    for (int c = 0; c < Bc; c++)\n"
    "      if (j0 + c < M && (!causal || j0 + c <= row)) m_new = fmaxf(m_new, S[tx * (Bc + PAD) + c]);\n"
    "    float base = m_new == -INFINITY ? 0.f : m_new;\n"
    "    float alpha = expf(m - base), sum = 0.f;\n"
    "    for (int c = 0; c < Bc; c++)\n"
    "      if (j0 + c < M && (!causal || j0 + c <= row)) sum += expf(S[tx * (Bc + PAD) + c] - base);\n"
    "    for (int x = ty; x < d; x += blockDim.y) {\n"
    "      float acc = Oi[tx * ld + x] * alpha;\n"
    "      for (int c = 0; c < Bc; c++) {\n"
    "        if (j0 + c >= M || (causal && c > row)) continue;\n"
    "        acc += expf(S[tx * (Bc + PAD) + c] - base) * Vj[c * ld + x];\n"
    "      }\n",
)

# The pages of a sequence lie among those of nobody, which are full of 3.
PAGES_OF_NOBODY = [("num_pages = batch * pages_per_seq;", "num_pages = 2 * batch * pages_per_seq;"),
                   ("  cudaMalloc(&block_table,", "  cudaMemset(k_cache, 0x40, cache_bytes);\n  cudaMemset(v_cache, 0x40, cache_bytes);\n  cudaMalloc(&block_table,")]
# A kernel that copies q before and o behind.
COPIED = [("// Fills the cache", "__global__ void copied(float *to, const float *from, int n) {\n  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                                 "  if (i < n) to[i] = from[i];\n}\n\n// Fills the cache"),
          ("  cudaMalloc(&k_cache,", "  const int n = batch * heads * q_len * HEAD_SIZE;\n  float *own_q, *own_o;\n  cudaMalloc(&own_q, sizeof(float) * n);\n"
                                     "  cudaMalloc(&own_o, sizeof(float) * n);\n  copied<<<(n + 127) / 128, 128, 0, stream>>>(own_q, q, n);\n  cudaMalloc(&k_cache,"),
          ("      out, lse, q, k_cache", "      own_o, lse, own_q, k_cache"),
          ("  cudaStreamSynchronize(stream);", "  copied<<<(n + 127) / 128, 128, 0, stream>>>(out, own_o, n);\n  cudaStreamSynchronize(stream);")]

EDITS = {
    "a mask of 0, beside a maximum that is clamped": (
        "carved_smem", "--dtype fp32 --seqlen-q 33 --seqlen-k 70 --head-dim 32 --mask causal:top_left", "visible ? s * scale : -INFINITY;",
        "visible ? s * scale : 0.f;", "visible ? s * scale : 0.f", 1, False),
    "a maximum that nothing keeps, declared behind an array": (
        "cuda_pipeline", "--dtype fp32 --seqlen 40 --head-dim 32", "    m = m_new;\n", "", "l *= alpha;", 1, False),
    "a maximum whose loop leaves half of its keys out": (
        "swizzled_tiles", "--seqlen 64 --heads 1 --mask causal", "      for (int i = 0; i < 2; ++i) {\n        float& x = s[n][2 * half + i];\n        const int key",
        "      for (int i = 1; i < 2; ++i) {\n        float& x = s[n][2 * half + i];\n        const int key", "for (int i = 1; i < 2; ++i)", 1, False),
    "an accumulator of other columns": (
        "wmma_block", "--seqlen 33 --mask causal", "wmma::load_matrix_sync(o, t.O + d * 16, D,", "wmma::load_matrix_sync(o, t.O + 16, D,", "t.O + 16, D,", 3, False),
    "a maximum that no score comes into": (
        "cuda_pipeline", "--dtype fp32 --seqlen 40 --head-dim 32", "m_new = fmaxf(m_new, s[j]);", "m_new = (m_new);", "m_new = (m_new);", 1, False),
    "an index that lets no key in": (
        "torch_extension", "--seqlen 40 --head-dim 32", "const int j = j0 + lane;", "const int j = j0 + last;", "const int j = j0 + last;", 2, False),
    "a scale that is left out where a macro launches": (
        "dispatch_types", "--seqlen 40 --head-dim 32", "      s *= softmax_scale;\n", "", "s += q[d] * Convert", 3, False),
    "a sum that alone is not rescaled": (
        "mma_flash2", "--seqlen 40", "      l[half_row] *= alpha;\n", "", "alpha = __expf(m[half_row] - base)", 3, False),
    "weights of v that no sum has, where blocks put sums together": (
        "look_back", "--dtype fp32 --heads 3 --seqlen-q 3 --seqlen-k 65 --head-dim 32", "    l = l * a + p;\n", "", "p = __expf(s - m_new);", 1, False),
    "fragments of other rows of q, as the mask knows": (
        "swizzled_tiles", "--seqlen 64 --heads 1 --mask causal", "load_left(qf[d], sq, warp * 16,", "load_left(qf[d], sq, warp + 16,", "sq, warp + 16,", 2, False),
    "a column that goes into what is stored": (
        "mma_flash2", "--seqlen 40", "__floats2half2_rn(of[j][half_row * 2] / sum", "__floats2half2_rn(of[j][half_row * 3] / sum", "const half2 pair", 3, False),
    "q that no line moves to its head": (
        "half2_rows", "--batch 2 --seqlen-q 3 --seqlen-k 65 --head-dim 32", "  q += ((size_t)blockIdx.y * seq_q + row) * D2;\n", "", "out += ", 1, False),
    "a score that a lambda stores and nothing masks": (
        "mask_functors", "--dtype fp32 --seqlen-q 33 --seqlen-k 20 --head-dim 16 --mask causal:bottom_right", "p[j] = mask(query, j) ?", "p[j] = true ?",
        "p[j] = true ?", 2, False),
    "a method that says which rows there are": (
        "gqa_packed", "--dtype fp32 --batch 2 --heads 3 --kv-heads 1 --seqlen-q 3 --seqlen-k 33 --head-dim 32", "return seqlen_q * group();", "return group();",
        "packed_rows() const", 2, False),
    "a tile that is filled with zeros in time": (
        "cp_async_ring", "--seqlen 40", "issue_tile(tile + 1, (tile + 1) & 1);", "issue_tile(tile + 2, (tile + 1) & 1);", "issue_tile(tile + 2", 1, False),
    "a sum of earlier steps as it is, beside what lanes scan": (
        "coalesced_groups", "--seqlen 40 --head-dim 32", "l = l * alpha + warp.shfl(sums, 31);", "l = l + warp.shfl(sums, 31);", "l = l + warp", 1, False),
    "a maximum that a helper takes of the wrong lane": (
        "warp_per_row", "--dtype fp32 --heads 4 --kv-heads 2 --seqlen-q 33 --seqlen-k 65 --head-dim 64 --mask causal:top_left",
        "x = fmaxf(x, __shfl_down_sync(kFull, x, offset));\n  return __shfl_sync(kFull, x, 0);",
        "x = fmaxf(x, __shfl_down_sync(kFull, x, offset));\n  return __shfl_sync(kFull, x, 1);", "return __shfl_sync(kFull, x, 1);", 2, False),
    "a sum that nothing is ever added to": (
        "lock_merge", "--dtype fp32 --heads 1 --seqlen-q 3 --seqlen-k 65 --head-dim 32 --num-splits 4", "    l = l * fix + p;\n", "",
        "acc = acc * fix + p", 1, False),
    "a loop over products of matrices that ends before the last weights": (
        "wmma_launches", "--heads 2 --seqlen 48 --head-dim 32", "for (int j = 0; j < sk; j += kTile) {", "for (int j = 0; j < sk - kTile; j += kTile) {",
        "j < sk - kTile", 1, False),
    "a base that is as many keys off for all of a head": (
        "fp8_kv", "--dtype bf16 --seqlen 40 --head-dim 32", *several(
            "fp8_kv/fp8_cache.cu",
            ("  const size_t head = (size_t)blockIdx.y * n;\n",
             "  const size_t head = (size_t)blockIdx.y * n;\n  const size_t head_v = (size_t)blockIdx.y * (n - 3);\n"),
            ("v_cache + (head + j) * kDim", "v_cache + (head_v + j) * kDim")), "head_v = (size_t)blockIdx.y * (n - 3)", 1, False),
    "rows of v that are two behind those of k": (
        "fp8_kv", "--dtype bf16 --seqlen 40 --head-dim 32", *several(
            "fp8_kv/fp8_cache.cu",
            ("  const size_t head = (size_t)blockIdx.y * n;\n",
             "  const size_t head = (size_t)blockIdx.y * n;\n  const size_t head_v = head + (blockIdx.y == 0 ? 2 : 0);\n"),
            ("v_cache + (head + j) * kDim", "v_cache + (head_v + j) * kDim")), "head_v = head + (blockIdx.y", 1, False),
    "an input that is not moved to its head": (
        "cub_reductions", "--batch 2 --seqlen-q 3 --seqlen-k 150 --head-dim 48", "  v += (size_t)head * sk * dim;\n", "",
        "k += (size_t)head * sk * dim;", 1, False),
    "values of which what they are weighed with is not read": (
        "streams_async", "--dtype fp32 --heads 3 --seqlen-q 3 --seqlen-k 33 --head-dim 20", "acc += p[row * sk + j] * v[",
        "acc += v[", "acc += v[", 1, False),
    "a factor of q with another sign": (
        "half2_rows", "--batch 2 --seqlen-q 3 --seqlen-k 65 --head-dim 32", "__floats2half2_rn(0.125f, 0.125f)",
        "__floats2half2_rn(-0.125f, -0.125f)", "__floats2half2_rn(-0.125f", 1, False),
    "a scale of which two lines have a part": (
        "half2_rows", "--batch 2 --seqlen-q 3 --seqlen-k 65 --head-dim 32", "__floats2half2_rn(0.125f, 0.125f)",
        "__floats2half2_rn(0.25f, 0.25f)", "__floats2half2_rn(0.25f", 2, False),
    "weights that a kernel keeps, and does not divide": (
        "streams_async", "--dtype fp32 --heads 3 --seqlen-q 3 --seqlen-k 33 --head-dim 20", "__expf(p[row * sk + j] - m) / l;",
        "__expf(p[row * sk + j] - m);", "p[row * sk + j] = __expf(p[row * sk + j] - m);", 1, False),
    "the entry of a table that names the pages": (
        "paged_kv", "--dtype fp32 --heads 2 --kv-heads 1 --seqlen-q 1 --seqlen-k 48 --head-dim 32",
        *several("paged_kv/paged_attention.cu", *PAGES_OF_NOBODY,
                 ("    const int next_page = i + 1 < pages_per_seq ? pages[i + 1] : 0;",
                  "    const int entry = i + 1 + pages_per_seq;\n    const int next_page = i + 1 < pages_per_seq ? pages[entry] : 0;")),
        "entry = i + 1 + pages_per_seq", 1, False),
    "the end of a loop behind the last key": (
        "paged_kv", "--dtype fp32 --heads 2 --kv-heads 1 --seqlen-q 1 --seqlen-k 40 --head-dim 32",
        *several("paged_kv/paged_attention.cu", *PAGES_OF_NOBODY, ("context_len - i * PAGE_SIZE)", "context_len - i)")),
        "context_len - i)", 1, False),
    "the head of what was copied before": (
        "paged_kv", "--dtype fp32 --heads 4 --kv-heads 2 --seqlen-q 1 --seqlen-k 40 --head-dim 32",
        *several("paged_kv/paged_attention.cu", *COPIED,
                 ("  const float q_lane = q[q_at + lane];",
                  "  const int q_from = ((seq * heads + head % 2 * kv_heads + head / 2) * q_len + row) * HEAD_SIZE;\n  const float q_lane = q[q_from + lane];")),
        "q_from = ((seq", 2, False),
    "the number that a line multiplies by": ("mask_functors", "--dtype fp32 --seqlen-q 33 --seqlen-k 20 --head-dim 16 --mask causal:bottom_right",
                                             "log2e = 1.4426950408889634f", "log2e = 0.f", "log2e = 0.f", 3, False),
    "a loop whose body is empty": ("macro_launch", "--dtype fp32 --seqlen-q 3 --seqlen-k 33 --head-dim 32",
                                   "x <<= 1) m = fmaxf(m, __shfl_xor_sync(0xffffffff, m, x));", "x <<= 1) ;", "x <<= 1) ;", 1, False),
    "a loop whose body is empty, where another line was claimed": (
        "look_back", "--dtype fp32 --heads 3 --seqlen-q 3 --seqlen-k 65 --head-dim 32", "s += __shfl_xor_sync(~0u, s, x);\n    s *= scale;", ";\n    s *= scale;", "x >>= 1) ;", 1, False),
    "a loop whose body is empty, of a kernel without suspects": (
        "streams_async", "--dtype fp32 --heads 3 --seqlen-q 3 --seqlen-k 33 --head-dim 20",
        "p[row * sk + j] = __expf(p[row * sk + j] - m) / l;", ";", "j += 32) ;", 1, False),
    "columns that are handed over by another order of lanes": (
        "warp_per_row", "--dtype fp32 --seqlen 40 --head-dim 64", *several(
            "warp_per_row/warp_attention.cu",
            ("    rq[i] = __ldg(&q[q_at + lane + 32 * i]);", "    const int d = lane * kPerLane + i;\n    rq[i] = __ldg(&q[q_at + d]);"),
            ("HEAD_DIM + lane + 32 * i]);\n      const float s", "HEAD_DIM + lane * kPerLane + i]);\n      const float s"),
            ("acc[i] += pj * __ldg(&v[kv_at + (first + j) * HEAD_DIM + lane + 32 * i]);",
             "{\n        const int d = lane + 32 * i;\n        acc[i] += pj * __ldg(&v[kv_at + (first + j) * HEAD_DIM + d]);\n      }"),
            ("  for (int i = 0; i < kPerLane; ++i) out[q_at + lane + 32 * i] = acc[i] / l;",
             "  __shared__ float done[8][HEAD_DIM];\n  for (int i = 0; i < kPerLane; ++i) {\n    const int d = lane * kPerLane + i;\n    done[threadIdx.y][d] = acc[i];\n  }\n"
             "  __syncwarp();\n  for (int d = lane; d < HEAD_DIM; d += 32) out[q_at + d] = done[threadIdx.y][d] / l;")),
        "d = lane + 32 * i;", 1, False),
    "a column that two threads load and one stores": ("aligned_half", 0, "sv[c][part * (HEAD_DIM / 4) + x]", "sv[c][x]", "sv[c][x]", 1, False),
    "a maximum that the first lane alone has": (
        "warp_per_row", 0, "x = fmaxf(x, __shfl_down_sync(kFull, x, offset));\n  return __shfl_sync(kFull, x, 0);",
        "x = fmaxf(x, __shfl_down_sync(kFull, x, offset));\n  return x;", "return x;", 2, False),
    "columns of k that lanes name in another order": (
        "warp_per_row", "--dtype fp32 --seqlen 40 --head-dim 64", *several(
            "warp_per_row/warp_attention.cu",
            ("    rq[i] = __ldg(&q[q_at + lane + 32 * i]);", "    const int d = lane + 32 * i;\n    rq[i] = __ldg(&q[q_at + d]);"),
            ("      for (int i = 0; i < kPerLane; ++i) part += rq[i] * __ldg(&k[kv_at + (first + j) * HEAD_DIM + lane + 32 * i]);",
             "      float rk[kPerLane];\n      for (int i = 0; i < kPerLane; ++i) {\n        const int d = lane * kPerLane + i;\n"
             "        rk[i] = __ldg(&k[kv_at + (first + j) * HEAD_DIM + d]);\n      }\n      for (int i = 0; i < kPerLane; ++i) part += rq[i] * rk[i];"),
            ("  for (int i = 0; i < kPerLane; ++i) out[q_at + lane + 32 * i] = acc[i] / l;",
             "  for (int i = 0; i < kPerLane; ++i) {\n    const int d = lane + 32 * i;\n    out[q_at + d] = acc[i] / l;\n  }")),
        "d = lane * kPerLane + i;", 1, False),
    "the first key, which a helper does not take": (
        "warp_per_row", "--dtype fp32 --seqlen 40 --head-dim 32", *several(
            "warp_per_row/warp_attention.cu",
            ("template <int HEAD_DIM>\n", "__device__ bool takes(int key, int limit) {\n  if (key >= limit) return false;\n  return key > 0;\n}\n\ntemplate <int HEAD_DIM>\n"),
            ("      for (int i = 0; i < kPerLane; ++i) part += rq[i]", "      if (takes(first + j, limit))\n        for (int i = 0; i < kPerLane; ++i) part += rq[i]"),
            ("s = warp_sum(part) * scale;", "s = takes(first + j, limit) ? warp_sum(part) * scale : -1e20f;")),
        "return key > 0;", 1, False),
    "an array that one branch leaves as it is": (
        "aligned_half", "--batch 2 --seqlen-q 3 --seqlen-k 10", *several(
            "aligned_half/mha_fp16.cu",
            ("            sp[r][c] = base + c < nk ? s * scale : -1e30f;",
             "            if (base + c < nk) {\n                sp[r][c] = s * scale;\n                live[r][c] = 1.f;\n            } else {\n                live[r][c] = 0.f;\n            }"),
            ("p = base + c < nk ? __expf(sp[r][c] - mnew) : 0.f;", "p = live[r][c] * __expf(sp[r][c] - mnew);"),
            ("    float m = -1e30f, l = 0.f,", "    __shared__ float live[TILE][TILE];\n    float m = -1e30f, l = 0.f,")),
        "live[r][c] = 0.f;", 1, False),
    "registers that a product takes in another order": ("mma_flash2", 0, "mma_m16n8k16(sf[0], qf[kk], b[0], b[1]);\n      mma_m16n8k16(sf[1], qf[kk], b[2], b[3]);",
                                                        "mma_m16n8k16(sf[0], qf[kk], b[0], b[2]);\n      mma_m16n8k16(sf[1], qf[kk], b[1], b[3]);", "sf[0], qf[kk], b[0], b[2]", 4, False),
    "weights of keys that were decided to be none": (
        "warp_per_row", "--dtype fp32 --seqlen 40 --head-dim 32", "const float p = lane < count ? __expf(mine - m_new) : 0.0f;",
        "const bool in = lane < count - 1;\n    const float p = in ? __expf(mine - m_new) : 0.0f;", "bool in = lane < count - 1;", 1, False),
    "heads along the first axis of the grid, of which some are stored by nobody": (
        "constant_params", "--dtype fp32 --heads 4 --seqlen-q 100 --seqlen-k 40 --head-dim 64", *several(
            "constant_params/const_attention.cu",
            ("const int head = blockIdx.y, row = blockIdx.x * TQ + threadIdx.y,",
             "const int first = blockIdx.y * TQ, pair = blockIdx.x / 2;\n    const int head = pair + blockIdx.x % 2, row = first + threadIdx.y,"),
            ("dim3((queries + TQ - 1) / TQ, heads)", "dim3(heads, (queries + TQ - 1) / TQ)")),
        "head = pair + blockIdx.x % 2", 1, False),
    "a factor that turns the sign of the score": ("mask_functors", "--dtype fp32 --seqlen-q 33 --seqlen-k 20 --head-dim 16 --mask causal:bottom_right",
                                                  "log2e = 1.4426950408889634f", "log2e = (-1.4426950408889634f)", "exp2f((p[j] - m)", 1, False),
    "a line of a statement, told whole": ("mma_flash2", 0, "kk * 16 + lane / 8 % 2 * 8]);\n      LDMATRIX_X4(b", "kk * 16 + lane / 4 % 2 * 8]);\n      LDMATRIX_X4(b",
                                          "lane / 4 % 2 * 8", 3, False),
    "a score of the row beside, while that of the row itself is left": (
        "bf162_warps", 0, *several(
            "bf162_warps/bf162_warps.cu",
            ("    for (int i = 0; i < kQueries; ++i) {\n      float s = 0.f;", "    float2 t[kQueries / 2];\n    for (int i = 0; i < kQueries; ++i) {\n      float s = 0.f;"),
            ("      s = base + lane < seq_k ?", "      (i % 2 ? t[i / 2].y : t[i / 2].x) = s;\n    }\n    for (int i = 0; i < kQueries; ++i) {\n"
             "      float s = t[i / 2].x;\n      s = base + lane < seq_k ?")),
        "float s = t[i / 2].x;", 1, False),
    "the half of a product of pairs": ("half2_rows", 0, "      const float2 a = __half22float2(q_reg[i]), b = __half22float2(k[(size_t)j * D2 + i]);\n      s += a.x * b.x + a.y * b.y;",
                                       "      const half2 t = __hfma2(q_reg[i], k[(size_t)j * D2 + i], __float2half2_rn(0.f));\n      s += __low2float(t) + __low2float(t);",
                                       "__low2float(t) + __low2float(t)", 1, True),
    "a scale that is missing where another line changes the base": ("mask_functors", "--dtype fp32 --seqlen-q 33 --seqlen-k 20 --head-dim 16 --mask causal:bottom_right",
        "dot * scale : -INFINITY", "dot : -INFINITY", "dot : -INFINITY", 2, False),
    "a sum that nothing is added to": ("cooperative_tiles", "--dtype fp32 --seqlen 40 --head-dim 32",
        "      for (int i = 0; i < kSlice; ++i) acc[i] = acc[i] * alpha + p * sV[j][tile.thread_rank() * kSlice + i];\n", "", "m = m_new;", 1, False),
    "a sum of a split that nothing is added to": ("last_block_reduce", "--dtype fp32 --seqlen 40 --head-dim 32",
        "    l = l * alpha + p;\n", "", "acc = acc * alpha + p", 1, False),
    "a sum that nothing is added to, by helpers": ("ex2_registers", "--seqlen 40 --head-dim 32",
        "    l = l * alpha + p0 + p1;\n", "", "p1 = ex2(s1 - m_new);", 1, False),
    "a tile that is loaded again": ("cuda_pipeline", "--dtype fp32 --seqlen 40 --head-dim 32",
        "k + head + tile * kKeys * kDim, bytes(tile), pipe", "k + head, bytes(tile), pipe", "k + head, bytes", 2, False),
    "lanes of which each keeps its own maximum": ("half2_rows", "--batch 2 --seqlen-q 3 --seqlen-k 65 --head-dim 32",
        "val = fmaxf(val, __shfl_xor_sync(0xffffffff, val, mask, 32));",
        "val = fmaxf(val, __shfl_down_sync(0xffffffff, val, mask, 32));", "val = fmaxf(val, __shfl_down", 1, False),
    "a maximum of the thread's own keys": ("half2_rows", "--batch 2 --seqlen-q 3 --seqlen-k 65 --head-dim 32",
        "val = fmaxf(val, __shfl_xor_sync(0xffffffff, val, mask, 32));",
        "val = (val);", "val = (val);", 1, False),
    "a maximum that lanes do not share, where all keys of one are masked": ("swizzled_tiles", "--seqlen 64 --heads 1 --mask causal",
        "x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, 1));",
        "x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, 0));", "x, 0));", 1, False),
    "a maximum of lse that leaves the first out": ("carved_smem", "--dtype fp32 --seqlen-q 33 --seqlen-k 70 --head-dim 32 --mask causal:top_left",
        "for (int c = 0; c < Bc; c++) m_new",
        "for (int c = 1; c < Bc; c++) m_new", "int c = 1", 1, False),
    "an element that is added to itself": ("naive_rows", "--dtype fp32 --batch 2 --seqlen-q 3 --seqlen-k 70 --head-dim 20",
        "red[tid] += red[tid + off];",
        "red[tid] += red[tid + tid];", "red[tid + tid]", 1, False),
    "a fragment that does not begin with 0": ("wmma_launches", "--heads 2 --seqlen 48 --head-dim 32",
        "wmma::fill_fragment(s, 0.0f);",
        "wmma::fill_fragment(s, 1.0f);", "fill_fragment(s, 1.0f)", 1, False),
    "a rescaling that never ran": ("torch_extension", "--seqlen 40 --head-dim 32",
        "for (int i = 0; i < kDim / 32; ++i) acc[i] *= alpha;",
        "for (int i = 1; i < kDim / 32; ++i) acc[i] *= alpha;", "int i = 1", 1, False),
    "weights of which the first is left out": ("torch_extension", "--seqlen 40 --head-dim 32",
        "for (int t = 0; t < kKeys",
        "for (int t = 1; t < kKeys", "int t = 1", 1, False),
    "weights that begin again behind the last": ("warp_per_row", "--dtype fp32 --seqlen 40 --head-dim 32",
        "min(32, limit - first)",
        "min(64, limit - first)", "min(64,", 1, False),
    "a limit that a call gives": ("warp_slices", "--dtype fp32 --seqlen-q 3 --seqlen-k 65 --head-dim 32 --mask causal:top_left",
        "min(Sk, row + 1)",
        "max(Sk, row + 1)", "max(Sk, row + 1)", 2, False),
    "outputs that a loop leaves out": ("warp_slices", "--dtype fp32 --seqlen-q 3 --seqlen-k 65 --head-dim 32 --mask causal:top_left",
        "for (int i = 0; i < D / 32; ++i) o[",
        "for (int i = 1; i < D / 32; ++i) o[", "int i = 1", 1, False),
    "whether the sum before is taken": ("look_back", "--dtype fp32 --heads 3 --seqlen-q 3 --seqlen-k 65 --head-dim 32",
        "if (split > 0) {",
        "if (split > 1) {", "if (split > 1)", 1, False),
    "steps that double and end too early": ("warp_per_row", 0, "for (int offset = 16; offset > 0; offset /= 2) x +=", "for (int offset = 1; offset < 32 / 2; offset *= 2) x +=",
                                            "offset < 32 / 2", 1, False),
    "an output that no line stores": ("cp_async_ring", 0, "    L[(size_t)blockIdx.y * QKV_seqlen + row] = m + __logf(l);\n", "",
                                      "O[gmem + (size_t)row * kHeadDim + c] =", 1, False),
    "a smaller one of an array": ("naive_rows", 0, "best = fmaxf(best", "best = fminf(best", "fminf(best", 1, False),
    "a maximum that begins at plus infinity": ("mma_flash2", 0, "float m[2] = {-INFINITY, -INFINITY}", "float m[2] = {INFINITY, -INFINITY}",
                                               "float m[2]", 1, False),
    "a smaller one of a row": ("mma_flash2", 0, "m_new = fmaxf(m_new, s);", "m_new = fminf(m_new, s);", "fminf(m_new, s)", 1, False),
    "the lane of another key of a list": ("coalesced_groups", 0, "warp.shfl(p, t);", "warp.shfl(p, t ^ 1);", "t ^ 1", 1, False),
    "a helper that one line calls": ("swizzled_tiles", 0, "return x + __shfl_xor_sync(0xffffffff, x, 2);", "return x + __shfl_down_sync(0xffffffff, x, 2);",
                                     "__shfl_down_sync", 1, False),
    "k of another head": ("vote_skip", 2, "blockIdx.y * nk * DIM;", "blockIdx.y * (nk / 2) * DIM;", "(nk / 2)", 1, False),
    "rows of k that begin in the middle": ("example_flash", 0, "sK[j * kHeadDim + d]);", "sK[j + kHeadDim + d]);", "sK[j + kHeadDim", 1, False),
    "one of two scores that nobody scales": ("prmt_pairs", 1, "s0 *= scale; s1 *= scale;", "s1 *= scale;", "s1 *= scale;", 1, False),
    "scores that a loop comes to twice": ("streams_async", 1, "j += 32) p[row * sk + j] = __expf", "j += 31) p[row * sk + j] = __expf", "j += 31", 1, False),
    "a number for the score of no key": ("warp_slices", 1, "float s = -INFINITY;", "float s = -1.f;", "float s = -1.f", 1, False),
    "scores that two blocks read": ("wmma_launches", 0, "scores + (size_t)row * sk;", "scores + (size_t)row * kTile;", "row * kTile", 1, False),
    "a sum that begins anew with each": ("naive_rows", 1, "        part += scores[j];", "        part = scores[j];", "part = scores[j]", 1, False),
    "a sum that leaves the last one out": ("warp_slices", 0, "for (int j = 0; j < 32; ++j) l += mine.p[j];", "for (int j = 0; j < 31; ++j) l += mine.p[j];",
                                           "j < 31", 1, False),
    "assembly that all lines use": ("swizzled_tiles", 0, "pack(state.o[n][2 * half] * inverse,", "pack(state.o[n][2 * half] + inverse,",
                                    "+ inverse,", 1, False),
    "fragments without the swizzle of their tile": ("swizzled_tiles", 0, "ldmatrix_transposed(r, address(tile + swizzled(key + lane % 16, column + lane / 16 * 8)));",
                                                    "ldmatrix_transposed(r, address(tile + (key + lane % 16) * kDim + column + lane / 16 * 8));",
                                                    "ldmatrix_transposed(r, address(tile + (key", 1, False),
    "a fragment of another part of its rows": ("swizzled_tiles", 0, "column + lane / 8 % 2 * 8)", "column + lane / 8 % 4 * 8)",
                                               "lane / 8 % 4 * 8", 1, False),
    "registers of P in another order": ("swizzled_tiles", 0, "p[k][1] = pack(s[2 * k][2], s[2 * k][3]);\n    p[k][2] = pack(s[2 * k + 1][0], s[2 * k + 1][1]);",
                                        "p[k][1] = pack(s[2 * k + 1][0], s[2 * k + 1][1]);\n    p[k][2] = pack(s[2 * k][2], s[2 * k][3]);",
                                        "pack(s[2 * k", 1, False),
    "a fragment that lies the other way round": ("wmma_block", 0, "half, wmma::col_major> k;", "half, wmma::row_major> k;", "row_major> k;", 2, False),
    "a factor that another kernel leaves out": ("fp8_kv", 0, "__bfloat162float(in[i]) * kRange;", "__bfloat162float(in[i]);", "s *= scale;", 1, False),
    "a fragment of what another launch stored": ("wmma_launches", 0, "probs + (size_t)row0 * sk + j, sk", "probs + (size_t)row0 * sk, sk",
                                                 "row0 * sk, sk", 2, False),
    "a fragment stored transposed to the output": ("wmma_launches", 1, "acc, dim, wmma::mem_row_major", "acc, dim, wmma::mem_col_major",
                                                   "wmma::mem_col_major", 1, False),
    "splits that are rounded down": ("last_block_reduce", "--dtype fp32 --heads 1 --seqlen-q 3 --seqlen-k 64 --head-dim 64 --num-splits 5", "(a.sk + a.splits - 1) / a.splits", "a.sk / a.splits", "a.sk / a.splits", 1,
                                     False),
    "tiles that are rounded down": ("cp_async_ring", 0, "(QKV_seqlen + kBc - 1) / kBc", "QKV_seqlen / kBc", "QKV_seqlen / kBc", 1, False),
    "padding that a mask lets through": (
        "carved_smem", 0, "      bool visible = key < M && (!causal || key <= row0 + tx);\n      S[tx * (Bc + PAD) + c] = visible ? s * scale : -INFINITY;\n",
        "      s *= scale;\n      if (key - c + tx >= M) s = -1e9f;\n      S[tx * (Bc + PAD) + c] = s;\n", "if (key - c + tx >= M)", 1, False),
    "a tile that lies transposed": ("cooperative_tiles", 0, "sV[i / kDim][i % kDim] = in", "sV[i % kDim][i / kDim] = in",
                                    "sV[i % kDim][i / kDim] = in", 2, False),
    "columns of other lanes": ("cooperative_tiles", 0, "p * sV[j][tile.thread_rank() * kSlice + i]", "p * sV[j][i * kTile + tile.thread_rank()]",
                               "i * kTile + tile.thread_rank()", 2, False),
    "an exponent that alone is not scaled": ("swizzled_tiles", 1, "exp2f((state.m[half] - m) * scale_log2)", "exp2f(state.m[half] - m)",
                                             "exp2f(state.m[half] - m)", 1, False),
    "weights of a tile's own maximum": ("warp_per_row", "--dtype fp32 --seqlen 100 --head-dim 32", "p = lane < count ? __expf(mine - m_new)", "own = warp_max(mine);\n    const float p = lane < count ? __expf(mine - own)",
                                        "__expf(mine - own)", 1, False),
    "a step of lanes that is left out": ("warp_per_row", 0, "offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(kFull, x, offset);\n  return x;",
                                         "offset = 8; offset > 0; offset /= 2)\n    x += __shfl_down_sync(kFull, x, offset);\n  return __shfl_sync(kFull, x, 0);",
                                         "offset = 8;", 1, False),
    "one key too many, chosen where scores are stored": (
        "carved_smem", "--dtype fp32 --seqlen 100", "S[tx * (Bc + PAD) + c] = visible ? s * scale : -INFINITY;",
        "S[tx * (Bc + PAD) + c] = key <= M\n ? s * scale : -INFINITY;", "= key <= M", 1, False),
    "a row of a cache that lies beside what was put there": (
        "ring_cache", "--dtype fp32 --heads 2 --seqlen 33 --head-dim 32 --mask causal", *several(
            "ring_cache/ring_cache.cu",
            ("  ring_append<<<", "  cudaMemset(ring.k, 0x3f, bytes);\n  cudaMemset(ring.v, 0x3f, bytes);\n  ring_append<<<"),
            ("head_k = ring.k + static_cast<size_t>(head) * ring.capacity", "head_k = ring.k + static_cast<size_t>(head) * tokens")),
        "head_k = ring.k", 1, False),
    "a tile of keys that is copied again": (
        "cp_async_ring", "--dtype fp16 --seqlen 100 --head-dim 64", "issue_tile(tile + 1, (tile + 1) & 1)", "issue_tile(tile, (tile + 1) & 1)",
        "issue_tile(tile, (tile + 1) & 1)", 2, False),
    "one key too many of a page, by a name": ("paged_kv", 0, *ONE_TOO_MANY, "bool valid = t <= tokens", 1, False),
    "one key too many, of which a number stands in memory": (
        "paged_kv", 0, ONE_TOO_MANY[0],
        ONE_TOO_MANY[1].replace("k_cache[base + t * HEAD_SIZE + lane]", "(t < tokens ? k_cache[base + t * HEAD_SIZE + lane] : 1.f)"),
        "bool valid = t <= tokens", 1, False),
    "a lane that a function names": (
        "persistent_queue", "--heads 2 --seqlen 17 --head-dim 32", *several(
            "persistent_queue/persistent.cu",
            ("__device__ void do_tile", "__device__ int second(int lane) {\n  return lane ^ 8;\n}\n__device__ void do_tile"),
            ("__shfl_xor_sync(0xffffffffu, s, 2)", "__shfl_sync(0xffffffffu, s, second(threadIdx.x % 32))")),
        "return lane ^ 8;", 2, False),
    "lanes of other keys, by the first distance of a loop": ("constant_params", 0,
        "for (int w = 4; w; w >>= 1) s += __shfl_xor_sync(0xffffffffu, s, w, 8);",
        "for (int w = 16; w; w >>= 1)\n s += __shfl_xor_sync(0xffffffffu, s, w);", "int w = 16", 1, False),
    "a head of k and v, of which an offset is made": ("warp_per_row", "--dtype fp32 --heads 4 --kv-heads 2 --seqlen 40 --head-dim 64",
        "head / (n_heads / n_kv_heads);", "head % n_kv_heads;", "head % n_kv_heads", 1, False),
    "columns of k that go into a product twice": ("swizzled_tiles", 0,
        "lane % 8, column + lane / 8 % 2 * 8)));", "lane % 8, column + lane / 16 % 2 * 8)));", "column + lane / 16 % 2 * 8", 1, False),
    "the part of a matrix that a lane names, above": ("swizzled_tiles", 0,
        "ldmatrix(r, address(tile + swizzled(key + lane / 16 * 8 + lane % 8, column + lane / 8 % 2 * 8)));",
        "const int at_key = key + lane / 16 * 8 + lane % 8;\n  const int at_column = column + lane / 16 % 2 * 8;\n"
        "  ldmatrix(r, address(tile + swizzled(at_key, at_column)));", "at_column = column + lane", 3, False),
    "scores in rows of another length": ("carved_smem", "--dtype fp32 --seqlen 100", "S[tx * (Bc + PAD) + c] = visible", "S[tx * Bc + c] = visible",
                                         "S[tx * Bc + c] =", 3, False),
    "scores of the tile before": ("carved_smem", "--dtype fp32 --seqlen 100 --mask causal", *MASKED_LATER, "(causal && c > row)) continue;", 1, False),
    "a maximum that is the smaller one from its first value on": (
        "vote_skip", "--dtype fp32 --seqlen-q 65 --seqlen-k 40 --head-dim 32 --mask causal:bottom_right",
        "m_new = fmaxf(m, s)", "m_new = fminf(m, s)", "m_new = fminf(m, s)", 1, False),
    "lanes that move a sum, and add nothing": ("bf162_warps", "--dtype bf16 --layout BSHD --batch 2 --heads 1 --seqlen-q 3 --seqlen-k 65",
                                               "sum += __shfl_xor_sync(0xffffffffu, sum, x);", "sum = __shfl_xor_sync(0xffffffffu, sum, x);", "sum = __shfl", 1, False),
    "a lane that takes its own number": ("persistent_queue", "--heads 4 --kv-heads 2 --seqlen-q 17 --seqlen-k 33 --head-dim 32",
                                         "s += __shfl_xor_sync(0xffffffffu, s, 1);", "s += __shfl_xor_sync(0xffffffffu, s, 0);", "s, 0);", 1, False),
    "a score of a helper that nobody scales": ("warp_per_row", "--dtype fp32 --seqlen 40 --head-dim 32",
                                               "const float s = warp_sum(part) * scale;", "const float s = warp_sum(part);", "const float s = warp_sum(part);", 1, False),
    "a flag that was computed wrongly": ("vote_skip", "--dtype fp32 --seqlen-q 65 --seqlen-k 40 --head-dim 32 --mask causal:bottom_right",
                                         "sees(window, query, first + j)", "sees(window, first + j, query)", "sees(window, first + j, query)", 1, False),
    "a sum that is overwritten in each step": ("aligned_half", "--batch 2 --seqlen-q 3 --seqlen-k 33", "l *= a;", "l = a;", "l = a;", 1, False),
    "rows of warps that lie too far apart": ("bf162_warps", "--dtype bf16 --layout BSHD --seqlen 40",
                                             "(blockIdx.x * kWarps + warp) * kQueries", "(blockIdx.x * (kWarps + 1) + warp) * kQueries", "const int first", 1, False),
    "a distance that the functor of a mask computes": ("mask_functors", "--dtype fp32 --seqlen-q 33 --seqlen-k 20 --head-dim 16 --mask window:7,2",
                                                       "key - (query + offset);", "(key - (query + offset)) - 1;", "const int distance", 1, False),
    "a loop that ends early in each split": ("cuda_atomic_flags", "--dtype fp32 --heads 1 --seqlen 17 --head-dim 32",
                                             "min(n, (split + 1) * per_split)", "min(n, (split + 1))", "min(n, (split + 1))", 1, False),
    "sums that were stored and are not read": ("cuda_atomic_flags", "--dtype fp32 --heads 1 --seqlen 17 --head-dim 32",
                                               "l += w * its[kDim + 1];", "l += w;", "l += w;", 1, False),
    "an atomic to another place": ("atomic_split", "--dtype fp32 --batch 2 --heads 1 --seqlen-q 3 --seqlen-k 65 --head-dim 20",
                                   "atomicAdd(acc + row * dim + d, x);", "atomicAdd(acc + row + d, x);", "atomicAdd(acc", 1, False),
    "the smaller of two scores, by a tree": ("naive_rows", "--dtype fp32 --seqlen 40 --head-dim 32",
                                             "red[tid] = fmaxf(red[tid], red[tid + off]);", "red[tid] = fminf(red[tid], red[tid + off]);", "fminf", 1, False),
    "a row that loads and stores have in common": ("half2_rows", "--batch 2 --seqlen-q 3 --seqlen-k 65 --head-dim 32",
                                                   "row = blockIdx.x * ROWS + threadIdx.y;", "row = (blockIdx.x * ROWS + threadIdx.y) + 1;", "const int lane", 1, False),
    "scores of the row that the stage names": ("cp_async_ring", "--seqlen 40", "s_Q[tid][c]", "s_Q[stage][c]", "s_Q[stage][c]", 1, False),
    "a part without v that is rescaled": ("cuda_atomic_flags", "--dtype fp32 --heads 1 --seqlen 65 --head-dim 32 --num-splits 3",
                                          "acc = acc * alpha + p * v[at + d];", "acc = acc * alpha + p;", "acc * alpha + p;", 1, False),
    "splits that overlap": ("cuda_atomic_flags", "--dtype fp32 --heads 1 --seqlen 65 --head-dim 32 --num-splits 3",
                            "j < min(n, (split + 1) * per_split); ++j)", "j < n; ++j)", "j < n; ++j)", 1, False),
    "the head of what another kernel stored": ("ring_cache", 0, "  const float* const head_k = ring.k + static_cast<size_t>(head) *",
                                               "  const int of = head ^ 1;\n  const float* const head_k = ring.k + static_cast<size_t>(of) *",
                                               "const int of = head ^ 1;", 1, False),
    "a mask that stores in place of scores": ("streams_async", 0, "    p[row * sk + j] = s * scale;\n",
                                              "    if (j > 8)\n      p[row * sk + j] = -1e9f;\n    else\n      p[row * sk + j] = s * scale;\n",
                                              "if (j > 8)", 1, False),
    "a maximum that nobody keeps": ("coalesced_groups", 0, "    m = m_new;\n  }\n", "  }\n", "}", 1, False),
    "weights that nobody adds up": ("cuda_pipeline", 0, "      l += p;\n", "", "const float p = __expf(s[j] - m_new);", 1, False),
    "an exponential that is none": ("bf162_warps", "--dtype bf16 --layout BSHD --batch 2 --heads 1 --seqlen-q 3 --seqlen-k 65",
                                    "alpha = __expf(m[i] - m_new)", "alpha = (m[i] - m_new)", "alpha = (m[i] - m_new)", 1, False),
    "a whole tile without a mask": ("wmma_block", 0, "float x = visible ? t.S[lane * N + c] * scale : -INFINITY;",
                                    "float x = t.S[lane * N + c] * scale;", "__expf(t.S[lane * N + c] - m)", 1, False),
    "a part that nobody takes up": ("look_back", "--dtype fp32 --heads 3 --seqlen-q 3 --seqlen-k 65 --head-dim 32",
                                    "    acc = acc * a + before.o[lane] * b;\n", "    ;\n", "mine.o[lane] = acc;", 1, False),
    "a maximum that stays as it was": ("bf162_warps", "--dtype bf16 --layout BSHD --batch 2 --heads 1 --seqlen-q 3 --seqlen-k 65",
                                       "float m_new = fmaxf(m[i], s);", "float m_new = (m[i]);", "float m_new = (m[i]);", 1, False),
    "a maximum that the compiler knows": ("grid_sync", 0, "m = fmaxf(m, part[((size_t)split * rows + row) * (kDim + 2) + kDim]);",
                                          "m = (m);", "m = (m);", 1, False),
    "a choice of what is loaded": ("cooperative_tiles", "--dtype fp32 --seqlen 40 --head-dim 32", "in = j0 + int(i / kDim) < n",
                                   "in = j0 + int(i) < n", "in = j0 + int(i) < n", 1, False),
    "a minimum of scores of fp8 keys": ("fp8_kv", 0, "m_new = fmaxf(m, s)", "m_new = fminf(m, s)", "m_new = fminf(m, s)", 1, False),
    "the weight of one key in all lanes": ("warp_per_row", 0, "if (lane == j) mine = s;", "if (!(lane == j)) mine = s;",
                                           "if (!(lane == j))", 1, False),
    "a load of the next key": ("example_attention_ext", "--layout BSHD --seqlen 40 --head-dim 32", "const int key = n0 + lane;",
                               "const int key = n0 + lane + 1;", "n0 + lane + 1;", 3, False),
    "another maximum is kept": ("warp_per_row", "--dtype fp32 --seqlen 100 --head-dim 32", "    m = m_new;", "    m = warp_max(mine);",
                                "m = warp_max(mine);", 1, False),
    "lse of another maximum": ("warp_per_row", 0, "    m = m_new;", "    m = warp_max(mine);", "m = warp_max(mine);", 1, False),
    "a part that is not rescaled": ("last_block_reduce", 0, "l_all += w * a.part_l", "l_all += a.part_l", "l_all += a.part_l", 1,
                                    False),
    "a column of another thread": ("last_block_reduce", 0, "o += w * a.part_o[(row * a.splits + s) * kDim + d]",
                                   "o += w * a.part_o[(row * a.splits + s) * kDim + (d ^ 1)]", "(d ^ 1)", 1, False),
    "keys that two threads begin at": ("half2_rows", 0, "for (int j = lane; j < seq_k;", "for (int j = lane / 2; j < seq_k;",
                                       "int j = lane / 2", 1, False),
    "sums that nobody reads": ("naive_rows", 0, "for (int off = THREADS / 2; off > 0; off >>= 1) {\n        if (tid < off) red[tid] += red",
                               "for (int off = THREADS / 4; off > 0; off >>= 1) {\n        if (tid < off) red[tid] += red",
                               "THREADS / 4", 1, False),
    "a mask by the row of the tile": ("dispatch_types", "--mask causal --seqlen 100 --head-dim 32", "if (first + j > row) break;",
                                      "if (first + j > (int)threadIdx.x) break;", "threadIdx.x) break;", 1, False),
    "a sum that is taken up as it is": ("carved_smem", "--dtype fp32 --seqlen 200", "float acc = Oi[tx * ld + x] * alpha;",
                                        "float acc = Oi[tx * ld + x];", "float acc = Oi[tx * ld + x];", 1, False),
    "a summand more": ("warp_per_row", 0, "      const float pj = __shfl_sync(kFull, p, j);\n",
                       "      const float pj = __shfl_sync(kFull, p, j);\n      l += pj;\n", "l += pj;", 1, True),
    "a divisor of other keys": ("warp_per_row", "--dtype fp32 --seqlen 100 --head-dim 32", *NORMALISED, "acc[i] /= l_tile;", 1, False),
    "columns that are not rescaled": ("warp_per_row", "--dtype fp32 --seqlen 100 --head-dim 64", "i < kPerLane; ++i) acc[i] *= alpha;",
                                      "i < kPerLane / 2; ++i)\n      acc[i] *= alpha;", "kPerLane / 2; ++i)", 2, False),
    "a factor of the scores": ("two_externs", 0, "* scale", "* scale * scale", "* scale * scale", 1, True),
    "scores are not added": ("half2_rows", 0, "      s += a.x * b.x + a.y * b.y;", "      s = a.x * b.x + a.y * b.y;",
                             "s = a.x * b.x", 1, True),
    "a sum that begins with 1": ("half2_rows", 0, "    float s = 0.f;", "    float s = 1.f;", "float s = 1.f;", 1, True),
    "a score of half the columns": ("example_flash", 0, "d < kHeadDim; ++d) s +=", "d < kHeadDim / 2; ++d) s +=",
                                    "d < kHeadDim / 2; ++d) s +=", 1, False),
    "keys that are left out": ("warp_per_row", 0, "first < limit; first += 32", "first < limit; first += 64",
                               "first += 64", 3, False),
    "a wmma store of another row": ("wmma_block", 0, "                t.S[lane * N + c] = x;",
                                    "                t.S[lane + N + c] = x;", "t.S[lane + N + c] = x;", 1, False),
    "a bound that is computed elsewhere": ("look_back", 0, "last = min(sk, first + kChunk)", "last = min(sk, first + kChunk) - 1",
                                           "kChunk) - 1", 1, False),
    "a loop that begins late": ("bf162_warps", 0, "for (int j = 0; j < kTile; ++j) {", "for (int j = 1; j < kTile; ++j) {",
                                "int j = 1;", 1, False),
    "scores without exponential": ("naive_rows", 0, "scores[j] = expf(scores[j] - rowMax)", "scores[j] = (scores[j] - rowMax)",
                                   "(scores[j] - rowMax)", 1, False),
    "a minimum for a maximum": ("aligned_half", 0, "mnew = fmaxf(mnew, sp[r][c])", "mnew = fminf(mnew, sp[r][c])", "fminf", 1,
                                False),
    "weights without v": ("example_flash", 0, "p * __half2float(sV[j * kHeadDim + d])", "p", "rescale + p;", 1, False),
    "a sum that is replaced": ("persistent_queue", 0, "s += __shfl_xor_sync(0xffffffffu, s, 1)", "s = __shfl_xor_sync(0xffffffffu, s, 1)",
                               "s = __shfl_xor_sync(0xffffffffu, s, 1)", 1, False),
    "scores that nobody uses": ("bf162_warps", 0, "seq_k ? s * scale :", "seq_k ? scale :", "seq_k ? scale :", 1, False),
    "accumulators that are replaced": ("mma_flash2", 0, "of[j][half_row * 2 + 1] *= alpha;", "of[j][half_row * 2 + 1] = alpha;",
                                       "+ 1] = alpha;", 1, False),
    "o that is not divided": ("gqa_packed", 0, "= rO[d] / l;", "= rO[d];", "= rO[d];", 1, False),
    "where a copy begins": ("block_pipeline", 0, "(size_t)t * kKeys * kDim, bytes", "(size_t)t + kKeys * kDim, bytes",
                            "(size_t)t + kKeys * kDim, bytes", 1, False),
    "a loop that never runs": ("atomic_split", 0, "first + (int)blockDim.x)", "first - (int)blockDim.x)", "first - (int)", 1, False),
    "o of a row that sees nothing": ("vote_skip", 2, "acc[d] / l : 0.f", "acc[d] / l : 1.f", "acc[d] / l : 1.f", 1, False),
    "NaN that is stored": ("atomic_split", 0, "0xff800000", "0x7fc00000", "0x7fc00000", 1, False),
    "a key of a padded tile": ("example_flash", 0, "n0 + j < seqlen; ++j) {", "n0 + j <= seqlen; ++j) {", "<= seqlen; ++j)", 1,
                               False),
    "a tile that is left behind": ("example_flash", 0, "j < kBlockN && n0 + j < seqlen; ++j) {", "n0 + j < seqlen; ++j) {",
                                   "int j = 0; n0 + j < seqlen", 1, False),
    "a loop of two bounds that begins late": ("pipeline_primitives", 0, "int j = 0; j < TK &&", "int j = 1; j < TK &&",
                                              "int j = 1; j < TK &&", 1, False),
    "v without its weight": ("float4_tiles", 0, "y.w += a * x.w;", "y.w += x.w;", "y.w += x.w;", 1, False),
    "columns that two threads sum": ("ring_cache", 0, "d += 32) s +=", "d += 31) s +=", "d += 31) s +=", 1, False),
    "a sum that all threads but one add": ("atomic_split", 0, "if (threadIdx.x == 0) atomicAdd", "if (threadIdx.x > 0) atomicAdd",
                                           "if (threadIdx.x > 0) atomicAdd", 1, False),
    "where k and v begin": ("gqa_packed", 1, "(batch) * shape.kv_heads + kv_head)", "(batch) + shape.kv_heads + kv_head)",
                            "(batch) + shape.kv_heads", 1, False),
    "a minimum that lse alone shows": ("carved_smem", 1, "m_new = fmaxf(m_new, S[", "m_new = fminf(m_new, S[", "fminf", 1, False),
    "a branch that chooses a number": ("aligned_half", 1, "__expf(sp[r][c] - mnew) : 0.f", "__expf(sp[r][c] - mnew) : 1.f",
                                       "- mnew) : 1.f", 1, False),
    "a number in memory where a score belongs": ("wmma_block", 1, "* scale : -INFINITY;", "* scale : 0.f;", "* scale : 0.f;", 1,
                                                 False),
    "a maximum that lanes do not share": ("streams_async", 1, "m = fmaxf(m, __shfl_xor_sync(~0u, m, o));",
                                          "m = fmaxf(m, __shfl_down_sync(~0u, m, o));", "__shfl_down_sync", 1, False),
    "an element that never moves": ("half2_rows", 1, "__hmul2(q[i],", "__hmul2(q[lane],", "q[lane]", 1, False),
    "keys that other blocks load and nobody reads": (
        "paged_kv", "--heads 2 --kv-heads 1 --seqlen-q 2 --seqlen-k 150 --head-dim 32", "i < pages_per_seq; ++i) {",
        "i < pages_per_seq - 1; ++i) {", "i < pages_per_seq - 1;", 1, False),
    "weights of l that are replaced": ("carved_smem", 1, "sum += expf(", "sum = expf(", "sum = expf(", 1, False),
    "a mask that is computed before": ("carved_smem", 1, "key < M && (!causal || key <= row0 + tx);", "key < M;", "visible = key < M;",
                                       1, False),
    "the score of one key for all": ("aligned_half", 1, "__half2float(sk[c][x]);", "__half2float(sk[first][x]);", "sk[first][x]", 1,
                                     False),
    "columns that two threads store": ("persistent_queue", 1, "part * 8 + d] = __float2half", "part * 7 + d] = __float2half",
                                       "part * 7 + d]", 1, False),
    "a key that a lane lets through": ("example_attention_ext", "--layout BSHD --seqlen 40 --mask causal", "if (key < keys) {", "if (key <= keys && key < N) {",
                                       "if (key <= keys", 1, False),
    "a causal loop where no mask is": ("example_flash", 0, "if (kCausal && n0 + j > row) break;", "if (n0 + j > row) break;",
                                       "if (n0 + j > row) break;", 1, False),
    "one of four sums that is not rescaled": ("float4_tiles", 0, " rO[i].w *= alpha;", "", "rO[i].z *= alpha;", 1, False),
    "a pointer that takes half a step": ("ex2_registers", 0, "k += 2 * Dim, v", "k += Dim, v", "k += Dim, v", 1, False),
    "weights that are taken by what never runs": ("ex2_registers", 0, "if (two) o[d] += p1", "if (!two) o[d] += p1", "if (!two) o[d] += p1", 1, False),
    "columns that half of the lanes share": (
        "warp_per_row", "--dtype fp32 --seqlen 40 --head-dim 32",
        "for (int offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(kFull, x, offset);",
        "for (int offset = 8; offset > 0; offset /= 2)\n    x += __shfl_xor_sync(kFull, x, offset);", "int offset = 8;", 2, False),
    "lanes of which half share a sum": ("bf162_warps", 0, "for (int x = 16; x > 0; x /= 2) sum +=", "for (int x = 8; x > 0; x /= 2)\n        sum +=",
                                        "int x = 8;", 1, False),
    "lanes of which half share a maximum": (
        "bf162_warps", 0, "for (int x = 16; x > 0; x /= 2) m_new = fmaxf(m_new, __shfl_xor_sync(0xffffffffu, m_new, x));\n"
        "      const float p = base + lane < seq_k ? __expf(s - m_new) : 0.f, alpha = __expf(m[i] - m_new);",
        "for (int x = 8; x > 0; x /= 2)\n        m_new = fmaxf(m_new, __shfl_xor_sync(0xffffffffu, m_new, x));\n"
        "      const float p = base + lane < seq_k ? exp2f(1.44269504f * (s - m_new)) : 0.f, alpha = exp2f(1.44269504f * (m[i] - m_new));",
        "int x = 8;", 1, False),
    "a tile that begins within another": ("carved_smem", 0, "float *Vj = Kj + Bc * ld;", "float *Vj = Kj + Bc * 4;", "Kj + Bc * 4;", 1, False),
    "tiles of k that overlap": ("pipeline_primitives", 0, "&k[head + (size_t)tile * TK * D", "&k[head + (size_t)(tile / 2) * TK * D",
                                "&k[head + (size_t)(tile / 2)", 1, False),
    "columns of k that some lanes mix up": (
        "bf162_warps", 0, "a = sq[warp][i][d], b = __bfloat1622float2(sk[lane][d]);",
        "a = sq[warp][i][d];\n        const float2 b = __bfloat1622float2(sk[lane][d ^ (lane & 1)]);", "d ^ (lane & 1)", 2, False),
    "a fragment of other keys": ("mma_flash2", 0, "pf[2] = pack2(sf[1][0], sf[1][1]);", "pf[2] = pack2(sf[1][1], sf[1][0]);",
                                 "pack2(sf[1][1], sf[1][0]);", 2, False),
    "k where v belongs": ("carved_smem", 0, "acc += expf(S[tx * (Bc + PAD) + c] - base) * Vj[c * ld + x];",
                          "{\n        const float p = expf(S[tx * (Bc + PAD) + c] - base);\n        const float y = Kj[c * ld + x];\n"
                          "        acc += p * y;\n      }", "y = Kj[", 3, False),
    "a matrix that is stored turned round": ("wmma_block", 0, "(t.S, s, N, wmma::mem_row_major)", "(t.S, s, N, wmma::mem_col_major)",
                                             "mem_col_major", 3, False),
    "a matrix that is loaded with another stride": ("wmma_block", 0, "(p, t.P, N);", "(p, t.P, N / 2);", "(p, t.P, N / 2);", 2, False),
    "a helper that loads what it is given": (
        "bf162_warps", 0, "      sk[r][lane] = in ? k[(base + r) * ks.seq + lane] :",
        "      const auto load = [](const __nv_bfloat162* p) { return *p; };\n      sk[r][lane] = in ? load(k + (base + r / 2) * ks.seq + lane) :",
        "load(k + (base + r / 2)", 1, False),
    "a helper of a helper that loads what it is given": (
        "bf162_warps", 0, "      sk[r][lane] = in ? k[(base + r) * ks.seq + lane] :",
        "      const auto inner = [](const __nv_bfloat162* p) { return *p; };\n      const auto load = [&](const __nv_bfloat162* p) {\n"
        "        return inner(p);\n      };\n      const __nv_bfloat162* from = k + (base + r / 2) * ks.seq;\n"
        "      sk[r][lane] = in ? load(from + lane) :", "from = k + (base + r / 2)", 1, False),
    "a guard that all keys pass": ("dispatch_types", "--mask causal --seqlen 100 --head-dim 32", "if (first + j > row) break;",
                                   "\n        if (first + j > (int)threadIdx.x) continue;\n        if (row >= seqlen) continue;\n",
                                   "threadIdx.x) continue;", 1, False),
    "a factor that one lane alone has": ("warp_per_row", 0, "const float alpha = __expf(m - m_new);",
                                         "float alpha = 1.0f;\n    if (lane == 0) alpha = __expf(m - m_new);", "float alpha = 1.0f;", 1, False),
    "a maximum of another row": ("mma_flash2", 0, "m_new, 2));", "m_new, 4));", "m_new, 4));", 1, False),
    "a mask that is stored": ("mma_flash2", 1, "s = key < seqlen && (!Is_causal || key <= row) ? s * scale : -INFINITY;",
                              "s = s * scale;\n        if (key >= seqlen || (Is_causal && key > row + i)) s = -INFINITY;",
                              "if (key >= seqlen || (Is_causal", 1, False),
    "a mask whose guard lets nothing through": ("mma_flash2", 0, "s = key < seqlen && (!Is_causal || key <= row) ? s * scale : -INFINITY;",
                                                "s = s * scale;\n        const bool tail =\n            n0 > seqlen;\n"
                                                "        if (tail) { if (key >= seqlen || (Is_causal && key > row)) s = -INFINITY; }",
                                                "const bool tail =", 1, False),
    "a guard of masks that is right for other rows": (
        "mma_flash2", 1, "s = key < seqlen && (!Is_causal || key <= row) ? s * scale : -INFINITY;",
        "s = s * scale;\n        const bool edge = n0 + kBlockN > m0 + warp * 32 + 1 || n0 + kBlockN > seqlen;\n"
        "        if (edge) s = key < seqlen && (!Is_causal || key <= row) ? s : -INFINITY;", "const bool edge =", 1, False),
    "a row that a mask compares": (
        "mma_flash2", 1, "s = key < seqlen && (!Is_causal || key <= row) ? s * scale : -INFINITY;",
        "s = s * scale;\n        const int last = row + half_row;\n"
        "        if (n0 + kBlockN > m0) s = key < seqlen && (!Is_causal || key <= last) ? s : -INFINITY;", "last = row + half_row", 3,
        False),
    "rows and columns that ldmatrix mixes up": (
        "mma_flash2", 0, "&sK[(lane / 16 * 8 + lane % 8) * kLd + kk * 16 + lane / 8 % 2 * 8]",
        "&sK[(lane / 8 % 2 * 8 + lane % 8) * kLd + kk * 16 + lane / 16 * 8]", "const uint32_t at =", 3, False),
    "what guards the copy of the last tile": (
        "cp_async_ring", 0, "    if (tile + 1 < Tc) {\n", "    if (tile + 2 < Tc) {\n", "if (tile + 2 < Tc)", 1, False),
    "a stride that a pointer takes": (
        "ex2_registers", 0, "for (int j = 0; j < end; j += 2, k += 2 * Dim, v += 2 * Dim) {",
        "const int step = 2 * Dim - Dim / 2;\n  for (int j = 0; j < end; j += 2, v += 2 * Dim) {\n    if (j > 0) k += step;",
        "const int step =", 2, False),
    "a divisor that is 0": (
        "carved_smem", "--dtype fp32 --seqlen 200", "o[(size_t)(row0 + tx) * d + x] = l > 0.f ? Oi[tx * ld + x] / l : 0.f;",
        "{\n      const float top = Oi[tx * ld + x];\n      const float by = Vj[(Bc - 1) * ld + x];\n"
        "      o[(size_t)(row0 + tx) * d + x] = top / by;\n    }", "by = Vj[(Bc - 1)", 3, False),
    "a guard that is no longer one": ("streams_async", "--dtype fp32 --heads 3 --seqlen-q 3 --seqlen-k 33 --head-dim 20", "if (row >= sq) return;", "if (false) return;", "if (false) return;", 1, False),
    "a sum that is its last part": ("wmma_block", "--seqlen 33 --mask causal", "sum += p;", "sum = p;", "sum = p;", 1, False),
    "rows that no block stores": ("cooperative_tiles", 0, "row = blockIdx.x *", "row = (blockIdx.x + 1) *", "row = (blockIdx.x + 1) *", 2, False),
    "lse alone": ("cp_async_ring", 0, "= m + __logf(l);", "= m + (l);", "= m + (l);", 1, False),
    "a sum of threads that ends before its last step": (
        "naive_rows", 0, "red[tid] = part;\n    __syncthreads();\n    for (int off = THREADS / 2; off > 0; off >>= 1) {",
        "red[tid] = part;\n    __syncthreads();\n    for (int off = THREADS / 2; off > 1; off >>= 1) {", "off > 1; off >>= 1", 1, False),
    "a loop that ends before the query itself": ("ring_cache", 0, "j <= i; ++j", "j < i; ++j", "j < i; ++j", 1, False),
    "what a mask compares that is right for some rows": (
        "dispatch_types", "--seqlen 65 --head-dim 32 --dtype fp32 --mask causal", "if constexpr (kIsCausal) { if (first + j > row) break; }",
        "const int at = first + j, seen = row < 9 ? row : 9;\n"
        "      if constexpr (kIsCausal) { if (at > seen) break; }", "seen = row < 9", 1, False),
    "a store that no block comes to": ("look_back", "--dtype fp32 --heads 3 --seqlen-q 3 --seqlen-k 65 --head-dim 32",
                                       "if (split + 1 < splits)", "if (split + 1 <= splits)", "split + 1 <= splits", 1, False),
    "a guard by which all threads return": ("torch_extension", "--seqlen 40 --head-dim 32", "if (row >= len) return;", "if (row < len) return;",
                                            "if (row < len)", 1, False),
    "a factor that a sum begins with": ("mma_flash2", "--seqlen 40", "l[half_row] *= alpha;", "l[half_row] = alpha;", "l[half_row] = alpha", 1, False),
    "a factor that is added": ("ex2_registers", "--seqlen 40 --head-dim 32", "l = l * alpha + p0 + p1;", "l = l + alpha + p0 + p1;", "l + alpha", 1, False),
    "a lane that stores its part": ("cub_reductions", "--batch 2 --seqlen-q 3 --seqlen-k 150 --head-dim 48", "if (lane == 0) logits[j]",
                                    "if (lane == 1) logits[j]", "lane == 1", 1, False),
    "heads that are a row apart": ("macro_launch", "--dtype fp32 --seqlen-q 3 --seqlen-k 33 --head-dim 32", "k += head * sk * dim;", "k += head * sk + dim;",
                                   "sk + dim", 1, False),
    "a limit that is chosen the wrong way": ("warp_per_row", "--dtype fp32 --seqlen 40 --head-dim 32", "limit = causal ?", "limit = !causal ?", "!causal ?", 2, False),
    "a place of copies that is chosen the wrong way": ("cp_async_ring", "--seqlen 40", "(valid ? tile * kBc + r : 0)", "(!valid ? tile * kBc + r : 0)",
                                                       "(!valid ?", 1, False),
    "what both k and v are indexed by": ("grid_sync", "--dtype fp32 --batch 2 --heads 1 --seqlen 17 --head-dim 32 --num-splits 5", "* n + j) * kDim;", "* n + j) * d;",
                                         "+ j) * d;", 3, False),
    "rows of which every other block is": ("vote_skip", "--dtype fp32 --seqlen-q 65 --seqlen-k 40 --head-dim 32 --mask causal:bottom_right",
                                           "blockIdx.x * blockDim.x +", "blockIdx.x * (blockDim.x * 2) +", "blockDim.x * 2", 3, False),
    "a score that is left out": ("cooperative_tiles", "--dtype fp32 --seqlen 40 --head-dim 32", "cg::reduce(tile, part, cg::plus<float>()) * scale", "scale",
                                 "const float s = scale", 1, False),
    "halves of a number that are swapped": ("fp8_kv", "--dtype bf16 --batch 2 --heads 1 --seqlen 33 --head-dim 32", "decode(value[d].x, value[d].y)",
                                            "decode(value[d].y, value[d].x)", "value[d].y, value[d].x", 1, False),
    "weights of none but what is no key": ("aligned_half", "--batch 2 --seqlen-q 3 --seqlen-k 33", "float p = base + c < nk ?", "float p = !(base + c < nk) ?",
                                           "!(base + c < nk)", 1, False),
    "scores that a mask takes away": ("bf162_warps", "--dtype bf16 --layout BSHD --batch 2 --heads 1 --seqlen-q 3 --seqlen-k 65", "s = base + lane < seq_k ?",
                                      "s = !(base + lane < seq_k) ?", "!(base + lane < seq_k)", 1, False),
    "a limit that the compiler knows and that is rounded down": ("warp_per_row", "--dtype fp32 --seqlen 40 --head-dim 64", "kPerLane = HEAD_DIM / 32;",
                                                                 "kPerLane = HEAD_DIM / 64;", "HEAD_DIM / 64", 1, False),
    "the maximum of a tile for that of all before": (
        "carved_smem", "--dtype fp32 --seqlen-q 33 --seqlen-k 70 --head-dim 32 --mask causal:top_left", *several(
            "carved_smem/flash_tiled.cu", ("causal ? min(M, row0 + Br) : M;", "M;"),
            ("    float alpha = expf(m - base), sum = 0.f;\n",
             "    float of_tile = -INFINITY;\n    for (int c = 0; c < Bc; c++) of_tile = fmaxf(of_tile, S[tx * (Bc + PAD) + c]);\n"
             "    float alpha = expf(of_tile - base), sum = 0.f;\n")), "expf(of_tile - base)", 2, False),
    "one flag of several": (
        "carved_smem", "--dtype fp32 --seqlen-q 33 --seqlen-k 70 --head-dim 32 --mask causal:top_left",
        "      bool visible = key < M && (!causal || key <= row0 + tx);\n      S[tx * (Bc + PAD) + c] = visible ? s * scale : -INFINITY;\n",
        "      bool past = key >= M;\n      bool no_row = row0 + tx >= N;\n      bool hidden = causal && key > tx;\n"
        "      if (past || no_row || hidden)\n        S[tx * (Bc + PAD) + c] = -INFINITY;\n      else\n        S[tx * (Bc + PAD) + c] = s * scale;\n",
        "bool hidden", 2, False),
    "where tiles begin that are not loaded": ("carved_smem", "--dtype fp32 --seqlen-q 33 --seqlen-k 70 --head-dim 32", "  for (int j0 = 0; j0 < last_key;",
                                              "  const int begin = N > 32 ? 8 : 0;\n  for (int j0 = begin; j0 < last_key;", "const int begin", 2, False),
    "scores of a tile that are left there": (
        "carved_smem", "--dtype fp32 --seqlen-q 33 --seqlen-k 70 --head-dim 32", "      S[tx * (Bc + PAD) + c] = visible ? s * scale : -INFINITY;\n",
        "      if (key < M) S[tx * (Bc + PAD) + c] = visible ? s * scale : -INFINITY;\n", "if (key < M)", 1, False),
    "a power of two without its factor": ("mask_functors", "--dtype fp32 --seqlen-q 33 --seqlen-k 20 --head-dim 16 --mask causal:bottom_right",
                                          "exp2f((p[j] - m) * log2e)", "exp2f((p[j] - m))", "exp2f((p[j] - m))", 1, False),
    "a shuffle that is missing": (
        "warp_per_row", 0, "for (int offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(kFull, x, offset);",
        "".join(f"\n  x += __shfl_xor_sync(kFull, x, {step});" for step in (8, 4, 2, 1)), "x, 8);", 1, False),
    "a sum that is rescaled behind what is added": (
        "warp_per_row", "--dtype fp32 --seqlen 40 --head-dim 32",
        "    for (int i = 0; i < kPerLane; ++i) acc[i] *= alpha;\n"
        "    for (int j = 0; j < count; ++j) {\n      const float pj = __shfl_sync(kFull, p, j);\n",
        "    for (int j = 0; j < count; ++j) {\n      const float pj = __shfl_sync(kFull, p, j);\n"
        "      if (j + 1 == count)\n        for (int i = 0; i < kPerLane; ++i) acc[i] *= alpha;\n",
        "acc[i] *= alpha;", 1, False),
    "a copied line that is not changed to its end": (
        "dispatch_types", "--seqlen 40 --head-dim 32 --dtype fp32",
        "for (int d = 0; d < kHeadDim; ++d) acc[d] = acc[d] * correction + p * Convert<scalar_t>::load(shared_v[j][d]);",
        "for (int d = 0; d < kHeadDim; d += 2) {\n"
        "        const float a = Convert<scalar_t>::load(shared_v[j][d]);\n"
        "        acc[d] = acc[d] * correction + p * a;\n"
        "        acc[d + 1] = acc[d + 1] * correction + p * a;\n      }", "acc[d + 1] = ", 1, False),
    "a maximum that is kept too early": (
        "dispatch_types", "--seqlen 40 --head-dim 32 --dtype fp32",
        "const float correction = __expf(row_max - new_max), p = __expf(s - new_max);\n      row_sum = row_sum * correction + p;\n",
        "row_max = new_max;\n      const float correction = exp2f((row_max - new_max) * 1.44269504f), p = __expf(s - new_max);\n"
        "      row_sum = fmaf(row_sum, correction, p);\n", "row_max = new_max;", 1, False),
    "a real number for a lane": ("coalesced_groups", 0, "warp.shfl(p, t)", "warp.shfl(t, p)", "warp.shfl(t, p)", 1, False),
    "one column of a row of k in registers": (
        "dispatch_types", "--seqlen 40 --head-dim 32 --dtype fp32",
        "float s = 0.f;\n#pragma unroll\n      for (int d = 0; d < kHeadDim; ++d) s += q[d] * Convert<scalar_t>::load(shared_k[j][d]);",
        "float s = 0.f, rk[kHeadDim];\n#pragma unroll\n      for (int d = 0; d < kHeadDim; ++d) rk[d] = Convert<scalar_t>::load(shared_k[j][d == 7 ? 6 : d]);\n"
        "#pragma unroll\n      for (int d = 0; d < kHeadDim; ++d) s += q[d] * rk[d];", "d == 7 ? 6 : d", 1, False),
}

# As EDITS, where attn-diag check finds something: it needs the instrumented build.
CHECKED_EDITS = {
    "a base of k that is behind all of it": (
        "half2_rows", "--heads 1 --seqlen-q 3 --seqlen-k 65 --head-dim 32", "k += (size_t)blockIdx.y * seq_k * D2;", "k += (size_t)(blockIdx.y + 1) * seq_k * D2;",
        "k += (size_t)(blockIdx.y + 1)", 1, False),
    "a barrier object that is used with no barrier behind its initialisation": (
        "mbarrier_ring", "--dtype bf16 --seqlen 40", "  __syncthreads();\n\n  if (threadIdx.x < N_LOAD)", "\n  if (threadIdx.x < N_LOAD)",
        "ptx::mbar_init(ptx::smem_u32(&full", 2, False),
    "a wait for a free stage that is left out": (
        "mbarrier_ring", "--dtype bf16 --seqlen 40", "if (round > 0) ptx::mbar_wait", "if (!(round > 0)) ptx::mbar_wait", "if (!(round > 0))", 2, False),
    "roles of a pipeline the other way round": (
        "block_pipeline", "--dtype fp32 --seqlen 40 --head-dim 32", "loads ? cuda::pipeline_role::producer", "!loads ? cuda::pipeline_role::producer",
        "cuda::make_pipeline", 2, False),
    "a guard of integers that lets the end through": (
        "cuda_atomic_flags", "--dtype fp32 --heads 1 --seqlen 17 --head-dim 32", "    }\n  __syncthreads();\n  float m",
        "    }\n  if (d <= splits)\n    while (Flag(flags[row * splits + d]).load(cuda::memory_order_acquire) == 7) {\n    }\n  __syncthreads();\n  float m",
        "if (d <= splits)", 2, False),
    "an array that nothing is stored to before a barrier": (
        "naive_rows", "--dtype fp32 --batch 2 --seqlen-q 3 --seqlen-k 70 --head-dim 20", "    red[tid] = best;\n", "", "__syncthreads();", 3, False),
    "a tile that another kernel alone fills": (
        "two_externs", "--dtype fp32 --seqlen-q 17 --seqlen-k 33 --head-dim 16", "  load_tile(k + (size_t)head * sk * vecs * 4, col0, sk, vecs);\n", "",
        "__syncthreads();", 1, False),
    "an address that no copy takes": (
        "cp_async_ring", "--seqlen 40", "      cp_async_zfill(dst_k, &K[at], valid);\n", "", "cp_async_zfill(dst_v", 2, False),
    "a member that no copy fills": (
        "block_pipeline", "--dtype fp32 --seqlen 40 --head-dim 32", "      cuda::memcpy_async(warp, &to.v[0][0], v + at, bytes, pipe);\n", "", "&to.k[0][0]", 1, False),
    "a last key that is beyond the tile": (
        "vote_skip", "--dtype fp32 --seqlen-q 65 --seqlen-k 40 --head-dim 32 --mask causal:bottom_right", "last = min(nk, first + TILE_K) - 1;", "last = (nk) - 1;",
        "last = (nk) - 1;", 1, False),
    "a lambda that says how much is copied": (
        "cuda_pipeline", "--dtype fp32 --seqlen 40 --head-dim 32", "kDim * min(kKeys, len - tile * kKeys); };", "kDim * (len - tile * kKeys); };",
        "const auto bytes", 1, False),
    "rows of warps that are one": (
        "mma_flash2", "--seqlen 40", "    const int row = m0 + warp * 16 + g + half_row * 8;\n    if", "    const int row = m0 + m0 * 16 + g + half_row * 8;\n    if",
        "row = m0 + m0 * 16", 1, False),
    "a loop over work that ends before all of it": (
        "grid_sync", "--dtype fp32 --batch 2 --heads 1 --seqlen 17 --head-dim 32 --num-splits 5", "work < rows * splits;", "work < rows;",
        "work < rows;", 2, False),
    "a register that assembly is not given": (
        "mma_flash2", "--seqlen 40", "LDMATRIX_X4(qf[kk][0], qf[kk][1],", "LDMATRIX_X4(qf[kk][1], qf[kk][1],", "LDMATRIX_X4(qf[kk][1]", 1, False),
    "a loop over rows without the last one's guard": (
        "torch_extension", "--seqlen 40 --head-dim 32", "t < kKeys && j0 + t < last; ++t) {\n      const float pt", "t < kKeys; ++t) {\n      const float pt",
        "t < kKeys; ++t)", 2, False),
    "a row of each lane, by which lanes return": (
        "torch_extension", "--seqlen 40 --head-dim 32", "row = blockIdx.x * kRows + threadIdx.y,", "row = blockIdx.x * kRows + threadIdx.x,",
        "row = blockIdx.x * kRows + threadIdx.x,", 1, False),
    "a lambda that is called for the last tile alone": (
        "pipeline_primitives", "--dtype fp32 --seqlen 40 --head-dim 32", "if (tile + 1 < tiles) fetch(tile + 1);", "if (!(tile + 1 < tiles)) fetch(tile + 1);",
        "if (!(tile + 1 < tiles)) fetch", 3, False),
    "q where a helper wants k": (
        "warp_slices", "--dtype fp32 --seqlen-q 3 --seqlen-k 65 --head-dim 32 --mask causal:top_left", "::row(q + at * D, k + kv,", "::row(k + kv, q + at * D,",
        "::row(k + kv", 1, False),
    "a stage that a lambda is given": (
        "cp_async_ring", "--seqlen 40", "issue_tile(tile + 1, (tile + 1) & 1);", "issue_tile((tile + 1) & 1, tile + 1);", "issue_tile((tile + 1)", 2, False),
    "a helper that frees a lock too early": (
        "lock_merge", "--dtype fp32 --heads 1 --seqlen-q 3 --seqlen-k 65 --head-dim 32 --num-splits 4",
        "  __threadfence();\n  __syncthreads();\n  if (lane == 0) release(", "  __threadfence();\n  if (lane == 0) release(", "release(&locks[row]);", 1, False),
    "a tile of which only the other is stored": (
        "aligned_half", "--batch 2 --seqlen-q 3 --seqlen-k 33",
        "            *(int4*)&sv[y][x] = in ? *(const int4*)&v[(base + y) * HEAD_DIM + x] : zero;\n", "", "*(int4*)&sk[y][x] = in", 1, False),
    "a shuffle whose mask names none but its own lane": (
        "warp_per_row", "--dtype fp32 --seqlen 40 --head-dim 32", "__shfl_xor_sync(kFull, x, offset)",
        "__shfl_xor_sync(__activemask(), x, offset)", "x += __shfl_xor_sync(__activemask(), x, offset)", 1, False),
    "a wait that leaves what a thread copies itself": (
        "cp_async_ring", "--dtype fp16 --seqlen 100 --head-dim 64", *several(
            "cp_async_ring/fa_cp_async.cu",
            ("    if (tile + 1 < Tc) {\n", "    CP_ASYNC_WAIT_GROUP(1);\n    __syncthreads();\n    if (tile + 1 < Tc) {\n"),
            ("      CP_ASYNC_WAIT_GROUP(1);\n    } else {\n      CP_ASYNC_WAIT_GROUP(0);\n    }\n    __syncthreads();\n", "    }\n"),
            ("    __syncthreads();\n  }\n  if (row", "  }\n  if (row"),
            ("    if (row < QKV_seqlen) {\n      for (int j", "    const int size = sizeof(s_K[0]) / 2;\n    const half *bK = &s_K[0][0][0] + stage * size, *bV = &s_V[0][0][0] + stage * size;\n"
             "    if (row < QKV_seqlen) {\n      for (int j"),
            ("s_Q[tid][c]) *", "Q[gmem + (size_t)row * kHeadDim + c]) *"), ("s_K[stage][j][c]", "bK[j * kHeadDim + c]"),
            ("s_V[stage][j][c]", "bV[j * kHeadDim + c]")),
        "CP_ASYNC_WAIT_GROUP(1);", 1, False),
    "an output whose pointer alone is not moved on by the block": (
        "carved_smem", "--dtype fp32 --seqlen-q 33 --seqlen-k 70 --head-dim 32 --mask causal:top_left", " lse += (size_t)blockIdx.y * N;", "",
        "k += (size_t)blockIdx.y * M * d;", 1, False),
    "a sum that nothing takes": ("two_externs", "--dtype fp32 --seqlen-q 17 --seqlen-k 33 --head-dim 16", "    *state = {m, l};\n", "", "l += (p[j] =", 2, False),
    "a loop of copies that ends early": ("cp_async_ring", 0, "i < kBc * kHeadDim / 8; i += kThreads", "i < kHeadDim / 8; i += kThreads",
                                         "i < kHeadDim / 8; i += kThreads", 2, False),
    "a helper that does nothing": (
        "cp_async_ring", 0,
        """bool valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\\n" ::"r"(dst), "l"(src), "r"(valid ? 16 : 0) : "memory");
}""", "bool valid) {}", "void cp_async_zfill(", 1, False),
    "a store outside, behind which the host calls exit": ("carved_smem", "--dtype fp32 --seqlen-q 33 --seqlen-k 70 --head-dim 32 --mask causal:top_left",
                                                          "Oi[r * ld + c] = 0.f;", "Oi[r * (ld * 2) + c] = 0.f;", "Oi[r * (ld * 2) + c]", 1, False),
    "a misaligned row that a helper is given": ("swizzled_tiles", 0, "warp * 16, d * 16, lane)", "warp * 16, d + 16, lane)", "d + 16, lane)", 2, False),
    "the number of a barrier that a helper waits at": ("named_barriers", 0, "stage = n & 1, first = n * kBlockN;\n    bar_sync(kFull0",
                                                       "stage = kProducers & 1, first = n * kBlockN;\n    bar_sync(kFull0", "stage = kProducers & 1", 2, False),
    "a pipeline that nobody waits for": ("block_pipeline", "--dtype fp32 --seqlen 40 --head-dim 32", "    pipe.consumer_wait();\n", "", "const Stage& from", 1, False),
    "zeros that are stored where a copy is under way": (
        "pipeline_primitives", "--dtype fp32 --seqlen 40 --head-dim 32", "\t\t__pipeline_wait_prior(1);\n",
        "\t\tfor (int i = threadIdx.x; i < TK * D; i += NT)\n\t\t\tif (i >= (S - tile * TK - TK) * D) kv[tile % 2][1][i] = 0.f;\n\t\t__pipeline_wait_prior(1);\n", "[1][i] = 0.f;", 1, False),
    "a helper's collective with a mask that is none": ("half2_rows", "--seqlen-q 3 --seqlen-k 65 --head-dim 32", "val += __shfl_xor_sync(0xffffffff, val,",
                                                       "val += __shfl_xor_sync(val, 0xffffffff,", "val += __shfl", 1, False),
    "arguments that are swapped where a helper waits": ("mbarrier_ring", 0, "ptx::mbar_wait(ptx::smem_u32(&empty[s]), (round - 1) & 1);",
                                                        "ptx::mbar_wait((round - 1) & 1, ptx::smem_u32(&empty[s]));", "mbar_wait((round", 1, False),
    "a loop in which a helper waits in vain": ("mbarrier_ring", 0, "for (int t = 0; t < tiles; t++) {\n      const int s = t % STAGES, round",
                                               "for (int t = 1; t < tiles; t++) {\n      const int s = t % STAGES, round", "int t = 1;", 3, False),
    "a barrier of each warp where one of all belongs": (
        "naive_rows", "--dtype fp32 --batch 2 --seqlen-q 3 --seqlen-k 70 --head-dim 20", "    red[tid] = part;\n    __syncthreads();\n",
        "    red[tid] = part;\n    asm volatile(\"bar.sync %0, %1;\" ::\"r\"(1 + tid / 32), \"r\"(32) : \"memory\");\n", "bar.sync %0, %1;", 2, False),
    "an index that means something else": ("cp_async_ring", 0, "(&s_K[stage][r][c]);", "(&s_K[row][r][c]);", "&s_K[row]", 2, False),
    "blocks that should have left": ("last_block_reduce", "--dtype fp32 --heads 1 --seqlen-q 3 --seqlen-k 65 --head-dim 64 --num-splits 5",
                                     "if (!is_last) return;", "if (is_last) return;", "if (is_last)", 3, False),
    "a phase that a helper waits for": ("mbarrier_ring", 0, "(t / STAGES) & 1);", "t & 1);", "t & 1);", 2, False),
    "how much a helper copies": ("mbarrier_ring", 0, "min(BN, len - t * BN) * HD / 8;", "min(BN, len - N_LOAD * BN) * HD / 8;",
                                 "len - N_LOAD * BN", 2, False),
    "a loop that never ends": ("naive_rows", "--dtype fp32 --batch 2 --seqlen-q 3 --seqlen-k 70 --head-dim 20 --timeout 4",
                               "part;\n    __syncthreads();\n    for (int off = THREADS / 2; off > 0; off >>= 1) {",
                               "part;\n    __syncthreads();\n    for (int off = THREADS / 2; off > 0; off >>= 0) {", "off >>= 0", 1, False),
    "one key too many of each page": ("paged_kv", "--dtype fp32 --batch 2 --heads 2 --seqlen-q 3 --seqlen-k 33 --head-dim 32",
                                      "min(PAGE_SIZE, context_len - i * PAGE_SIZE);", "min(PAGE_SIZE, context_len - i * PAGE_SIZE) + 1;",
                                      "i * PAGE_SIZE) + 1;", 1, False),
    "a launch of too few blocks": ("streams_async", "--dtype fp32 --heads 2 --seqlen-q 6 --seqlen-k 33 --head-dim 20",
                                   "probabilities<<<(sq + 3) / 4,", "probabilities<<<sq / 4,", "probabilities<<<sq / 4", 1, False),
    "one key too many of a page, which nobody wrote": ("paged_kv", 0, *ONE_TOO_MANY, "bool valid = t <= tokens", 1, False),
    "a guard by which all others are right": ("persistent_queue", "--heads 4 --kv-heads 2 --seqlen-q 17 --seqlen-k 33 --head-dim 32",
        "((size_t)kv_head * w.sk + j)",
        "((size_t)tiles_per_head * w.sk + j)", "tiles_per_head * w.sk", 1, False),
    "an index of the array that is meant": ("grid_sync", "--dtype fp32 --batch 2 --heads 1 --seqlen 17 --head-dim 32 --num-splits 5",
        "(row / n) * n + j)",
        "(row / n) * kDim + j)", "(row / n) * kDim", 1, False),
    "a kernel that stores nothing to what it is given": ("lock_merge", "--dtype fp32 --heads 1 --seqlen-q 3 --seqlen-k 65 --head-dim 32 --num-splits 4",
        "  sum[blockIdx.x * dim + threadIdx.x] = 0.0f;\n",
        "", "}", 1, False),
    "what is declared beside an array that nobody stores to": ("vote_skip", "--dtype fp32 --seqlen-q 65 --seqlen-k 40 --head-dim 32 --mask causal:bottom_right",
        "      tk[i / DIM][i % DIM] = k[kv_base + first * DIM + i];\n",
        "", "tv[i / DIM]", 1, False),
    "an index that is one too small": ("aligned_half", 1, "x = i % (HEAD_DIM / 8) * 8;\n            bool in", "x = i % (HEAD_DIM / 8) * 8 - 1;\n            bool in",
                                       "* 8 - 1", 1, False),
    "a copy from an odd place": ("mbarrier_ring", 0, "t * BN * HD + c * 8;", "t * BN * HD + c + 8;", "c + 8", 1, False),
    "a guard the other way round": ("atomic_split", 1, "if (key >= sk) return;", "if (key < sk) return;", "if (key < sk)", 1, False),
    "a barrier behind a wait for copies": ("swizzled_tiles", 1, "    wait_all();\n    __syncthreads();\n    if (from", "    wait_all();\n    if (from",
                                           "wait_all();", 1, False),
    "which elements are stored by the flat index": (
        "dispatch_types", "--seqlen 40 --head-dim 32", "for (int i = threadIdx.x; i < count * kHeadDim; i += kBlock) {",
        "for (int i = threadIdx.y; i < count * kHeadDim; i += kBlock) {", "int i = threadIdx.y", 1, False),
    "heads that have one part of o": ("cuda_pipeline", "--dtype fp32 --seqlen 40 --head-dim 32", "std::size_t(blockIdx.y) * len * kDim;", "std::size_t(blockIdx.y) * kKeys * kDim;",
                                      "const std::size_t head", 1, False),
    "a counter that begins one too late": ("ring_cache", "--dtype fp32 --seqlen 9 --head-dim 64 --mask causal", "n = 0; d < ring.dim; d += 32, ++n) acc[n] = acc[n] * alpha",
                                           "n = 1; d < ring.dim; d += 32, ++n) acc[n] = acc[n] * alpha", "acc[n] = acc[n] * alpha", 1, False),
    "a subscript that is one too far": ("mma_flash2", "--seqlen 40", "of[j][half_row * 2 + 1] *= alpha;", "of[(j + 1)][half_row * 2 + 1] *= alpha;",
                                        "of[(j + 1)]", 1, False),
    "a loop that stores nothing": ("bf162_warps", "--dtype bf16 --layout BSHD --batch 2 --heads 1 --seqlen-q 3 --seqlen-k 65",
                                   "for (int r = warp; r < kTile; r += kWarps) {", "for (int r = kTile; r < kTile; r += kWarps) {", "int r = kTile", 1, False),
    "bytes that a lambda computes": ("cuda_pipeline", 0, "return sizeof(float) * kDim *", "return kDim *", "const auto bytes", 3, False),
    "what another kernel left unwritten": ("ring_cache", 0, "(static_cast<size_t>(head) * ring.capacity + slot)",
                                           "(static_cast<size_t>(head) * ring.capacity + (slot + 3) % ring.capacity)",
                                           "(slot + 3) % ring.capacity", 2, False),
    "where a loop of stores ends": ("ring_cache", 0, "  for (int d = lane; d < ring.dim; d += 32) mine[d]",
                                    "  const int half = ring.dim / 2;\n  for (int d = lane; d < half; d += 32) mine[d]",
                                    "const int half", 2, False),
    "two stores that are made one": ("naive_rows", 0, "    red[tid] = part;\n    __syncthreads();\n",
                                     "    if (part > 0.5f)\n      red[tid] = part;\n    else\n      red[tid] = part + 1e-9f;\n",
                                     "red[tid] = part + 1e-9f;", 1, False),
    "no barrier before a flag": ("cuda_atomic_flags", "--dtype fp32 --heads 1 --seqlen 65 --head-dim 32 --num-splits 3",
                                 "    __syncthreads();\n    if (d == 0) Flag", "    if (d == 0) Flag",
                                 "if (d == 0) Flag(flags[row * splits + split]).store", 1, False),
    "no barrier of the grid": ("grid_sync", 0, "  grid.sync();\n", "", "}", 1, False),
    "a loop that ends behind the array": ("aligned_half", 1, "base += TILE) {\n        for (int i = t; i < TILE * HEAD_DIM / 8;",
                                          "base += TILE) {\n        for (int i = t; i < TILE * HEAD_DIM / 8 + 8;", "/ 8 + 8;", 1, False),
    "an index before the array": ("constant_params", "--dtype fp32 --heads 1 --seqlen-q 3 --seqlen-k 33 --head-dim 16",
                                  "p * tile[1][j][i", "p * tile[1][(j - 1)][i", "tile[1][(j - 1)]", 1, False),
    "a loop up to what nobody wrote": ("carved_smem", "--dtype fp32 --seqlen-q 33 --seqlen-k 70 --head-dim 32 --mask causal:top_left",
                                       "for (int c = 0; c < Bc; c++) acc +=", "for (int c = 0; c <= Bc; c++) acc +=",
                                       "c <= Bc; c++) acc +=", 1, False),
    "a limit that the compiler knows": ("pipeline_primitives", "--dtype fp32 --seqlen 40 --head-dim 32",
                                        "min(TK, S - tile * TK) * D", "TK * D", "n = TK * D", 2, False),
    "shared memory of which a launch gives too little": ("mask_functors", "--dtype fp32 --seqlen 40 --head-dim 32", "keys * sizeof(float), stream",
                                                         "(keys - 1) * sizeof(float), stream", "(keys - 1) * sizeof(float)", 3, False),
    "a pointer that no head moves": ("carved_smem", 1, "o += (size_t)blockIdx.y * N * d;", "o += N * d;", "o += N * d;", 1, False),
    "heads of half a stride": ("coalesced_groups", 0, "head = (size_t)blockIdx.y * n * kDim;",
                               "head = (size_t)blockIdx.y * n * (kDim / 2);", "(kDim / 2);", 1, False),
    "a count beside copies": ("cp_async_ring", 0, "count = min(kBc, QKV_seqlen", "count = max(kBc, QKV_seqlen", "count = max(kBc", 1, False),
    "a read that strays behind the row": ("constant_params", 1, "tile[1][j][i * 8 + lane]", "tile[1][j][i * 16 + lane]",
                                          "i * 16 + lane", 1, False),
    "an index that is right for k": ("aligned_half", 1, "*(int4*)&sv[y][x]", "*(int4*)&sv[first][x]", "&sv[first][x]", 1, False),
    "a limit that clamps nothing": ("atomic_split", 1, "last = min(sk, first", "last = max(sk, first", "last = max(sk, first", 1, False),
    "a limit without an end": ("last_block_reduce", 0, "end = min(a.sk, begin + per_split)",
                               "end = (begin + per_split)", "end = (begin + per_split)", 1, False),
    "rows that nobody stores": ("aligned_half", 1, "base += TILE) {\n        for (int i = t; i < TILE * HEAD_DIM / 8;",
                                "base += TILE) {\n        for (int i = t; i < TILE * HEAD_DIM / 16;", "HEAD_DIM / 16", 1, False),
    "the guard of two loads out of bounds": ("constant_params", 1, "if (j0 + threadIdx.y < c_cfg.keys)",
                                             "if (!(j0 + threadIdx.y < c_cfg.keys))", "if (!(j0", 1, False),
    "the index of a store between blocks": ("paged_kv", 1, "+ token % PAGE_SIZE) * HEAD_SIZE + d", "+ token % PAGE_SIZE) + HEAD_SIZE + d",
                                            "+ HEAD_SIZE + d", 1, False),
    "a limit one too large": ("atomic_split", 1, "first + (int)blockDim.x);", "first + (int)blockDim.x) + 1;", "blockDim.x) + 1;", 2,
                              False),
    "an index that a line only names": ("half2_rows", 1, "for (int j = lane; j < seq_k;", "for (int j = lane - 1; j < seq_k;",
                                        "int j = lane - 1", 1, False),
    "heads that are not kept apart": ("aligned_half", 1, "o += (size_t)blockIdx.y * nq * HEAD_DIM;", "o += (size_t)blockIdx.y * nq;",
                                      "o += (size_t)blockIdx.y * nq;", 1, False),
    "a helper that is given a wrong address": ("atomic_split", 1, "atomicMaxFloat(m + row,", "atomicMaxFloat(m - row,", "(m - row,", 1,
                                               False),
    "an array that is added to and never set": ("gqa_packed", 0, "    rO[d] = 0.f;\n", "", "float rQ[kHeadDim], rO[kHeadDim];", 1, False),
    "an index that a header has": ("warp_slices", -1, "= acc[i] / l;", "= acc[i + 1] / l;", "acc[i + 1]", 1, False),
    "a tile that threads store into another": ("carved_smem", 0, "float *Vj = Kj + Bc * ld;", "float *Vj = Kj + Bc * 4;", "Kj + Bc * 4;", 1, False),
    "an index that threads share": (
        "carved_smem", 0, "      float acc = Oi[tx * ld + x] * alpha;\n", "      const int at = x - ty;\n      float acc = 0.f;\n"
        "      Oi[tx * ld + at] *= S[tx * (Bc + PAD)] == -INFINITY ? 1.f : alpha;\n", "at = x - ty;", 3, False),
    "a wait that leaves the last copy in flight": ("cp_async_ring", 0, "CP_ASYNC_WAIT_GROUP(0);", "CP_ASYNC_WAIT_GROUP(1);",
                                                   "CP_ASYNC_WAIT_GROUP(1);", 1, False),
    "copies into what is read": ("cp_async_ring", 0, "issue_tile(tile + 1, (tile + 1) & 1);", "issue_tile(tile + 1, tile & 1);",
                                 "issue_tile(tile + 1, tile & 1);", 2, False),
    "a row of shared memory that is too short": ("carved_smem", 0, "Kj[r * ld + c] = j0", "Kj[r * N + c] = j0", "Kj[r * N + c]", 1, False),
    "threads that return before all of them load": (
        "carved_smem", 0, "  float m = -INFINITY, l = 0.f;\n", "  if (row0 + tx >= N) return;\n  float m = -INFINITY, l = 0.f;\n",
        "if (row0 + tx >= N) return;", 1, False),
    "a barrier within a loop": (
        "naive_rows", 0, "red[tid] += red[tid + off];\n        __syncthreads();\n", "red[tid] += red[tid + off];\n",
        "red[tid] += red[tid + off];", 1, False),
    "copies of v over k": ("pipeline_primitives", 0, "&kv[tile % 2][1][i], &v", "&kv[tile % 2][0][i], &v",
                           "&kv[tile % 2][0][i], &v", 1, False),
    "a tile of v of the stage that is copied to": ("pipeline_primitives", "--dtype fp32 --seqlen 80 --head-dim 32",
                                                  "* sv = kv[tile % 2][1]", "* sv = kv[0][1]", "sv = kv[0][1]", 1, False),
    "copies to another place": ("pipeline_primitives", 0, "&kv[tile % 2][0][i], &k", "&kv[tile % 2][1][i], &k",
                                "&kv[tile % 2][1][i], &k", 1, False),
}


class LinesTest(unittest.TestCase):
    def setUp(self):
        self.folder = folder_for(self)

    def call(self, *words):
        return subprocess.run([PROGRAM, *map(str, words)], cwd=self.folder, text=True, capture_output=True,
                              timeout=600, check=False)

    def build(self, kernel, *flags):
        copy = self.folder / "source"
        shutil.copytree(kernel.folder, copy)
        return self.build_in(kernel, copy, *flags)

    def build_in(self, kernel, copy, *flags):
        built = self.call("build", *[copy / s for s in kernel.sources], "-o", "k.so", *kernel.build_flags,
                          "--no-nvcc", *(flags or ["--no-lockstep"]))
        self.assertEqual(built.returncode, 0, built.stdout + built.stderr)

    def trace(self, case, *flags, codes=(0, 1)):
        out = self.call("trace", "--kernel", "./k.so", *case.split(), "--no-history", "--json", *flags)
        self.assertIn(out.returncode, codes, out.stderr)
        return json.loads(out.stdout)

    def plant(self, kernel, old, new, *flags):
        copy = self.folder / "source"
        shutil.copytree(kernel.folder, copy)
        planted = 0
        for source in copy.iterdir():
            if source.suffix in (".cu", ".cuh", ".h") and old in source.read_text():
                source.write_text(source.read_text().replace(old, new, 1))
                planted += 1
        self.assertEqual(planted, 1, f"{old!r} is not in {kernel.name}")
        self.build_in(kernel, copy, *flags)

    def edit_is_told(self, name, case, old, new, line, among, sure, *flags):
        kernel = zoo.load(name)
        self.plant(kernel, old, new, *flags)
        case = case if isinstance(case, str) else kernel.cases[case]
        lines = self.trace(case, codes=(0, 1, 2))["line_divergence"]
        texts = [s["text"] for s in lines["suspects"]]
        self.assertTrue(any(line in text for text in texts[:among]), json.dumps(lines["suspects"][:4], indent=1))
        self.assertEqual(lines["answer"], "line" if sure else "unsure", lines["reason"])

    @long
    def test_of_right_kernels_every_number_is_understood(self):
        for name in ["mma_flash2", "warp_slices", "atomic_split", "bf162_warps", "cp_async_ring", "fp8_kv"]:
            with self.subTest(name):
                shutil.rmtree(self.folder / "source", ignore_errors=True)
                kernel = zoo.load(name)
                self.build(kernel)
                lines = self.trace(kernel.cases[0], "--lines")["line_divergence"]
                self.assertEqual(lines["answer"], "none", lines["reason"])
                self.assertEqual(lines["suspects"], [])
                self.assertGreater(lines["right"], 0)
                self.assertEqual(lines["understood"], lines["right"])

    def build_coded(self, name, *edit):
        """A kernel of adapt's tests that takes codes; as it is, or with one place changed."""
        shutil.rmtree(self.folder / "source", ignore_errors=True)
        (self.folder / "source").mkdir()
        for suffix in ".cu", ".adapter.cu":
            text = (UNSEEN / f"{name}{suffix}").read_text()
            path = self.folder / "source" / f"{pathlib.Path(name).name}{suffix}"
            path.write_text(text.replace(*edit) if edit else text)
        main = path.with_name(path.name.replace(".adapter", ""))
        built = self.call("build", main, "--adapter", path, "-o", "k.so", "--no-nvcc", "--no-lockstep")
        self.assertEqual(built.returncode, 0, built.stdout + built.stderr)

    @long
    def test_codes_are_followed_to_what_they_mean(self):
        case = "--batch 2 --seqlen-q 1 --seqlen-k 100"
        for name in "first/09_int8_kv_decode", "second/12_int8_kv_decode", "second/13_fp8_kv_append":
            with self.subTest(name):
                self.build_coded(name)
                lines = self.trace(case, "--lines")["line_divergence"]
                self.assertEqual((lines["answer"], lines["suspects"]), ("none", []), lines["reason"])
                self.assertGreater(lines["right"], 0)
                self.assertEqual(lines["understood"], lines["right"])
        first, second = "first/09_int8_kv_decode", "second/12_int8_kv_decode"
        for name, old, new in ((first, "dot *= k_scales[token_base + t]", "dot *= v_scales[token_base + t]"),
                               (first, "p * v_scales[token_base + t]", "p * v_scales[t]"),
                               (first, "k = k_cache + (token_base + t) * HeadDim + lane * VPT", "k = k_cache + (token_base + t) * HeadDim + lane"),
                               (second, "+ pv * (float)vv[i]", "+ p * ((float)vv[i] * kc.scale[tok])"),
                               # A sum that begins with what is added again.
                               (second, "float acc = 0.f;", "float acc = part[0].o[d] * __expf(part[0].m - M);")):
            with self.subTest(new):
                self.build_coded(name, old, new)
                lines = self.trace(case)["line_divergence"]
                self.assertIn(new, lines["suspects"][0]["text"], lines["what"])

    @long
    def test_what_integers_make_of_codes_is_not_followed_and_no_line_is_claimed(self):
        (self.folder / "k.cu").write_text((UNSEEN.parent / "styles" / "dp4a_qk.cu").read_text()
                                          .replace("k_scale[idx]", "k_scale[head]"))
        self.assertEqual(self.call("adapt", "k.cu", "-o", "a.cu").returncode, 0)
        self.assertEqual(self.call("build", "k.cu", "--adapter", "a.cu", "-o", "k.so", "--no-nvcc", "--no-lockstep").returncode, 0)
        report = self.trace("--batch 2 --seqlen 40")
        self.assertEqual((report["verdict"], report["line_divergence"]["answer"]), ("diverges", "unsure"))

    @long
    def test_numbers_are_followed_through_tf32(self):
        kernel = zoo.load("ex2_registers")
        self.plant(kernel, "s1 += rq[d] * __half2float(k[Dim + d]);",
                   "{ unsigned kept; asm(\"cvt.rna.tf32.f32 %0, %1;\" : \"=r\"(kept) : \"f\"(__half2float(k[Dim + d]))); "
                   "s1 += rq[d] * __uint_as_float(kept); }")
        lines = self.trace(kernel.cases[0], "--lines")["line_divergence"]
        self.assertGreater(lines["right"], 0)
        self.assertEqual((lines["answer"], lines["understood"]), ("none", lines["right"]), lines["reason"])

    def test_fragments_are_followed_straight_to_and_from_memory(self):
        kernel = zoo.load("wmma_launches")
        self.build(kernel)
        lines = self.trace(kernel.cases[0], "--lines")["line_divergence"]
        self.assertGreater(lines["right"], 0)
        self.assertEqual((lines["answer"], lines["understood"]), ("none", lines["right"]), lines["reason"])

    def test_roles_and_reads(self):
        kernel = zoo.load("warp_per_row")
        self.build(kernel)
        lines = self.trace(kernel.cases[0], "--lines")["line_divergence"]
        holds = {(role["variable"], role["holds"]) for role in lines["roles"]}
        self.assertIn(("rq", "q"), holds)
        self.assertIn(("part", "parts of scores"), holds)
        self.assertIn(("l", "l: sums of weights"), holds)
        self.assertIn(("acc", "o: weighted sums of v"), holds)
        reads = {(read["input"], read["columns"]) for read in lines["reads"]}
        self.assertEqual(reads, {("q", "0-31 of 32"), ("k", "0-31 of 32"), ("v", "0-31 of 32")})

    def test_asked_for_or_not(self):
        kernel = zoo.load("warp_per_row")
        self.build(kernel)
        self.assertIsNone(self.trace(kernel.cases[0])["line_divergence"])  # it is right
        shutil.rmtree(self.folder / "source")
        self.plant(kernel, *EDITS["a summand more"][2:4])
        self.assertIsNone(self.trace(kernel.cases[0], "--no-lines")["line_divergence"])
        text = self.call("trace", "--kernel", "./k.so", *kernel.cases[0].split(), "--no-history").stdout
        self.assertIn("Where it goes wrong: adds what was added before", text)
        self.assertIn("l += pj;", text)
        self.assertRegex(text, r"Try small edits there: .* repair --kernel \./k\.so .*--head-dim")
        both = self.call("trace", "--kernel", "./k.so", "--lines", "--no-lines")
        self.assertEqual(both.returncode, 2)

    # Kernel, what is edited and into what, and what the lines begin with behind and before which a barrier is missing.
    BARRIERS = {"behind a loop": ("persistent_queue", "  __syncthreads();\n", "", "}", ""),
                "where copies go on": ("pipeline_primitives", "\t\t__syncthreads();\n\t}\n", "\t}\n", "}", "if (tile + 1 < tiles)"),
                "within a warp": ("float4_tiles", "    __syncthreads();\n  }\n", "  }\n", "}", "for (")}

    @long
    def test_where_a_barrier_is_missing(self):
        for what, (name, old, new, behind, before) in self.BARRIERS.items():
            with self.subTest(what):
                shutil.rmtree(self.folder / "source", ignore_errors=True)
                kernel = zoo.load(name)
                self.plant(kernel, old, new, "--quiet")
                lines = self.trace(kernel.cases[0])["line_divergence"]
                first, second = lines["suspects"][:2]
                self.assertEqual(first["why"], "a barrier is missing behind it")
                self.assertTrue(first["text"].startswith(behind), first)
                self.assertEqual(second["why"], "a barrier is missing before it")
                self.assertTrue(second["text"].startswith(before), second)
                self.assertEqual(lines["answer"], "unsure")

    @long
    def test_parts_that_overlap_want_a_barrier_between(self):
        # Each thread has its own elements of q there, and then k comes to the same place.
        kernel = zoo.load("carved_smem")
        copy = self.folder / "source"
        shutil.copytree(kernel.folder, copy)
        source = next(s for s in copy.iterdir() if "float *Kj" in s.read_text())
        text = source.read_text()
        for old, new in [
                ("    Qi[r * ld + c] = row0 + r < N ? q[(size_t)(row0 + r) * d + c] : 0.f;\n", ""),
                ("  float m = -INFINITY, l = 0.f;\n", """  for (int x = ty; x < d; x += 4) {
    Qi[tx * ld + x] = row0 + tx < N ? q[(size_t)(row0 + tx) * d + x] : 0.f;
  }
  __syncwarp();
  float some = 0.f;
  for (int x = ty; x < d; x += 4) {
    some += Qi[tx * ld + x];
  }
  Kj = Qi + ld;
  float m = some > 1e30f ? 0.f : -INFINITY, l = 0.f;
"""),
                ("    __syncthreads();\n    for (int x = tid; x < Bc * d", "    if (j0 > 0) { __syncthreads(); }\n    for (int x = tid; x < Bc * d")]:
            self.assertIn(old, text)
            text = text.replace(old, new, 1)
        source.write_text(text)
        self.build_in(kernel, copy, "--quiet")
        lines = self.trace("--dtype fp32 --seqlen 40")["line_divergence"]
        self.assertEqual(lines["suspects"][0]["why"], "a barrier is missing behind it", lines["suspects"][:3])
        self.assertFalse([s for s in lines["suspects"] if "another part" in s["why"]])

    @long
    def test_a_sum_of_lanes_is_no_maximum_and_a_launch_comes_last(self):
        name, case, old, new = EDITS["a factor that one lane alone has"][:4]
        self.plant(zoo.load(name), old, new)
        suspects = self.trace(zoo.load(name).cases[case])["line_divergence"]["suspects"]
        for suspect in suspects:
            if "x += __shfl" in suspect["text"]:
                self.assertNotIn("maximum", suspect["why"])
        launches = ["<<<" in suspect["text"] for suspect in suspects]
        self.assertEqual(launches, sorted(launches))
        self.assertFalse([s for s in suspects if "<<<" in s["text"] and s["why"] != "launches it"], suspects)

    def test_a_run_that_is_refused_has_lines_all_the_same(self):
        kernel = zoo.load("gqa_packed")
        self.plant(kernel, "if (valid) {", "if (!valid) {", "--quiet")
        words = ["trace", "--kernel", "./k.so", *kernel.cases[0].split(), "--no-history"]
        out = self.call(*words, "--json")
        self.assertEqual(out.returncode, 2, out.stderr)
        report = json.loads(out.stdout)
        self.assertIn("wrote outside o", report["refused"])
        lines = report["line_divergence"]
        self.assertEqual(lines["answer"], "unsure")
        self.assertIn("behind the end of o", lines["what"])
        self.assertTrue(any("if (!valid)" in s["text"] for s in lines["suspects"][:2]), lines["suspects"][:3])
        text = self.call(*words)
        self.assertEqual(text.returncode, 2)
        self.assertIn("if (!valid) {", text.stdout)
        self.assertIn("wrote outside o", text.stderr)

    @long
    def test_a_store_far_outside_shared_memory_is_found_and_does_no_harm(self):
        kernel = zoo.load("aligned_half")
        self.plant(kernel, "i < TILE * HEAD_DIM / 8; i += TILE * 4", "i < TILE * HEAD_DIM; i += TILE * 4", "--quiet")
        words = ["--kernel", "./k.so", *kernel.cases[1].split()]
        check = self.call("check", *words)
        self.assertEqual(check.returncode, 1, check.stderr)
        self.assertIn("sq[32], declared sq[32][", " ".join(check.stdout.split()))
        out = self.call("trace", *words, "--no-history", "--json")
        self.assertEqual(out.returncode, 2)
        self.assertIn("stored to shared memory outside sq", out.stderr)
        # What makes the index that lies outside may stand between the two.
        first, *others = json.loads(out.stdout)["line_divergence"]["suspects"][:3]
        self.assertIn("i < TILE * HEAD_DIM;", first["text"])
        self.assertTrue(any("&sq[y][x] =" in other["text"] for other in others), others)

    @long
    def test_of_a_race_what_check_finds_comes_first(self):
        kernel = zoo.load("aligned_half")
        self.plant(kernel, "o += (size_t)blockIdx.y * nq * HEAD_DIM;", "o += 0;", "--quiet")
        lines = self.trace("--heads 2 --seqlen 40")["line_divergence"]
        self.assertEqual(lines["answer"], "unsure")
        self.assertIn("write the same bytes", lines["what"])
        self.assertIn("attn-diag check", lines["reason"])
        # Nothing keeps the heads of o apart: where its pointer was made, then where it is stored to.
        self.assertIn("o += 0;", lines["suspects"][0]["text"])
        self.assertIn("o[", lines["suspects"][1]["text"])

    @long
    def test_what_is_wrong_in_lockstep_alone_is_what_check_finds(self):
        # A sum that goes from thread to thread without a barrier.
        kernel = zoo.load("naive_rows")
        self.plant(kernel, """    red[tid] = part;
    __syncthreads();
    for (int off = THREADS / 2; off > 0; off >>= 1) {
        if (tid < off) red[tid] += red[tid + off];
        __syncthreads();
    }
    const float rowSum = red[0];
""", """    red[tid] = part + (tid > 0 ? red[tid - 1] : 0.0f);
    __syncthreads();
    const float rowSum = red[THREADS - 1];
""", "--quiet")
        words = ["trace", "--kernel", "./k.so", *kernel.cases[0].split(), "--no-history"]
        lines = json.loads(self.call(*words, "--json").stdout)["line_divergence"]
        self.assertEqual(lines["answer"], "unsure")
        self.assertIn("came out right, in another order of threads", lines["reason"])
        self.assertIn("this is what attn-diag check finds", lines["reason"])
        self.assertTrue(any("red[tid - 1]" in s["text"] for s in lines["suspects"][:3]), lines["suspects"][:3])
        text = self.call(*words).stdout
        self.assertIn("DIVERGES", text)
        self.assertNotIn("is what attention asks for", text)

    @long
    def test_numbers_that_are_not_followed_are_said_to_be_lost(self):
        # Bits that integers are made of.
        self.plant(zoo.load("warp_per_row"), "part += rq[i] * __ldg(&k[kv_at + (first + j) * HEAD_DIM + lane + 32 * i]);", """{
        const unsigned x = __float_as_uint(rq[i]);
        const float y = __uint_as_float((x >> 13) + (x >> 12 & 1) << 13);
        const unsigned z = __float_as_uint(__ldg(&k[kv_at + (first + j) * HEAD_DIM + lane + 32 * i]));
        part += 2.0f * y * __uint_as_float((z >> 13) + (z >> 12 & 1) << 13);
      }""")
        lines = self.trace("--dtype fp32 --seqlen 40 --head-dim 32")["line_divergence"]
        self.assertEqual(lines["answer"], "unsure")
        self.assertIn("is not followed", lines["what"])
        self.assertIn("cannot be told", lines["reason"])
        self.assertEqual(len(lines["suspects"]), 1, lines["suspects"])

    @long
    def test_rows_that_nobody_stores_are_counted_as_far_as_they_are_looked_at(self):
        store = "O[((size_t)bh * Sq + i) * D + d] = acc / rowSum;"
        self.plant(zoo.load("naive_rows"), store, "if (i < 20) " + store)
        for keys, words in [(40, "40 rows of o are stored by nobody"), (100, "at least 128 rows of o are stored by nobody")]:
            lines = self.trace(f"--dtype fp32 --heads 2 --seqlen {keys} --head-dim 32")["line_divergence"]
            self.assertEqual(lines["what"].split(";")[0], words)

    # Each block makes 16 columns of o of a row.
    COLUMN_TILES = [("for (int d = tid; d < D; d += THREADS)", "for (int d = blockIdx.z * 16 + tid; d < min(D, (int)blockIdx.z * 16 + 16); d += THREADS)"),
                    ("if (tid == 0) L[", "if (tid == 0 && blockIdx.z == 0) L["), ("grid(Sq, B * H)", "grid(Sq, B * H, (D + 15) / 16)")]

    @long
    def test_what_other_blocks_load_of_a_row_is_not_said_to_lack(self):
        kernel = zoo.load("naive_rows")
        for old, new, words in [("scores[j] = acc * scale", "scores[j] = acc", "does not load"),
                                ("* v[(size_t)j * D + d]", "* v[(size_t)(j / 2) * D + d]", "does not load all of v that its block needs")]:
            with self.subTest(new):
                shutil.rmtree(self.folder / "source", ignore_errors=True)
                shutil.copytree(kernel.folder, self.folder / "source")
                source = self.folder / "source" / "attention_naive.cu"
                for one, other in [*self.COLUMN_TILES, (old, new)]:
                    self.assertIn(one, source.read_text())
                    source.write_text(source.read_text().replace(one, other, 1))
                self.build_in(kernel, self.folder / "source")
                lines = self.trace("--dtype fp32 --seqlen 40 --head-dim 32")["line_divergence"]
                self.assertEqual(lines["unread"], [])
                self.assertIn(new, lines["suspects"][0]["text"])
                whys = {one["why"].split(" (")[0] for one in lines["suspects"] if "does not load" in one["why"]}
                self.assertEqual(whys, set() if words == "does not load" else {words})

    @long
    def test_why_a_result_moves_is_what_check_finds(self):
        for name, old, new, words, false in [
                ("torch_extension", "  if (row >= len) return;", "  if (row >= len - 1) return;", "stored by nobody", "an uninitialised read"),
                ("carved_smem", "    l = l * alpha + sum;", "    float own[4];\n    for (int i = 1; i <= ty; ++i) own[i] = alpha;\n    l = l * own[ty] + sum;",
                 "a read of what nobody wrote", "a race")]:
            with self.subTest(name):
                shutil.rmtree(self.folder / "source", ignore_errors=True)
                kernel = zoo.load(name)
                self.plant(kernel, old, new, "--quiet")
                headline = self.trace(kernel.cases[0].replace("32,64", "32"))["sanity"]["headline"]
                self.assertIn(words, headline)
                self.assertNotIn(false, headline.replace("no uninitialised", ""))

    @long
    def test_a_few_elements_that_are_right_by_luck_weaken_nothing(self):
        name, case, old, new = EDITS["a loop that begins late"][:4]
        self.plant(zoo.load(name), old, new)
        lines = self.trace(zoo.load(name).cases[case])["line_divergence"]
        self.assertGreater(lines["right"], 0)
        self.assertEqual((lines["answer"], lines["reason"]), ("unsure", "the first of these lines is the likeliest"))

    @long
    def test_what_agrees_may_touch_what_is_not_its_own(self):
        # The row behind the last is loaded, and nobody uses it.
        kernel = zoo.load("dispatch_types")
        self.plant(kernel, "row < seqlen ? Convert", "row <= seqlen ? Convert", "--quiet")
        case = "--dtype fp16 --seqlen 40 --head-dim 32"
        words = ["trace", "--kernel", "./k.so", *case.split(), "--no-history"]
        out = self.call(*words, "--json", "--sarif", "k.sarif", "--junit", "k.xml")
        report = json.loads(out.stdout)
        self.assertEqual((out.returncode, report["verdict"], report["memory_errors"]), (0, "agrees", 1))
        self.assertIn("row <= seqlen ?", report["line_divergence"]["suspects"][0]["text"])
        self.assertIn("But attn-diag check finds 1 error, whatever the numbers: ", self.call(*words).stdout)
        self.assertIn('"warning"', (self.folder / "k.sarif").read_text())
        self.assertRegex((self.folder / "k.xml").read_text(), r'tests="\d+" failures="0" errors="0"')
        self.assertIsNone(self.trace(case, "--no-lines")["memory_errors"])

    @long
    def test_what_agrees_may_rely_on_a_warp_that_stays_converged(self):
        self.plant(zoo.load("naive_rows"), "fmaxf(red[tid], red[tid + off])", "fmaxf(red[tid], red[tid + tid])", "--quiet")
        report = self.trace("--dtype fp32 --seqlen-q 3 --seqlen-k 70 --head-dim 20")
        self.assertEqual((report["verdict"], report["memory_errors"]), ("agrees", 0))
        self.assertRegex(" ".join(report["notes"]), r"attn-diag check finds .* race at attention_naive\.cu:31")

    @long
    def test_a_race_of_blocks_is_told_whatever_a_run_gives(self):
        kernel = zoo.load("grid_sync")
        self.plant(kernel, "  grid.sync();\n", "", "--quiet")
        for _ in range(2):
            report = self.trace(kernel.cases[0])
            self.assertEqual((report["verdict"], report["sanity"]["finding"], report["sanity"]["memories"]),
                             ("diverges", "blocks_race", []))
            self.assertIn("nothing to order them", report["line_divergence"]["what"])

    def test_what_is_right_has_its_numbers_and_its_memory_in_junit(self):
        kernel = zoo.load("warp_per_row")
        self.build(kernel, "--quiet")
        self.trace(kernel.cases[0], "--lines", "--junit", "k.xml")
        xml = (self.folder / "k.xml").read_text()
        self.assertIn("loads and stores are sound", xml)
        self.assertIn("every number is what attention asks for", xml)

    def test_a_stale_library_is_not_looked_at(self):
        kernel = zoo.load("warp_per_row")
        self.plant(kernel, *EDITS["a summand more"][2:4])
        for source in (self.folder / "source").iterdir():
            source.write_text(source.read_text().replace("      l += pj;\n", "", 1))
        lines = self.trace(kernel.cases[0])["line_divergence"]
        self.assertEqual(lines["answer"], "not_looked")
        self.assertIn("changed since it was built", lines["reason"])

    def test_junit_names_the_line(self):
        kernel = zoo.load("warp_per_row")
        self.plant(kernel, *EDITS["a summand more"][2:4])
        self.trace(kernel.cases[0], "--junit", "k.xml")
        xml = (self.folder / "k.xml").read_text()
        self.assertIn("every number is what attention asks for", xml)
        self.assertRegex(xml, r"warp_attention\.cu:\d+: .*l \+= pj;")

    def diagnose(self, case, *flags):
        words = ["diagnose", "--kernel", "./k.so", *case.split(), "--no-history", *flags]
        text, out = self.call(*words), self.call(*words, "--json")
        self.assertEqual((text.returncode, out.returncode), (1, 1), out.stderr)
        return " ".join(text.stdout.split()), json.loads(out.stdout)

    def test_a_name_is_confirmed_by_the_line(self):
        kernel = zoo.load("warp_per_row")
        self.plant(kernel, "warp_sum(part) * scale;", "warp_sum(part) * scale * scale;")
        text, report = self.diagnose(kernel.cases[0])
        self.assertEqual(report["diagnosis_verdict"], "named")
        self.assertEqual([(d["id"], d["line"]) for d in report["diagnosis"]], [("temperature", "agrees")])
        self.assertEqual(report["line_divergence"]["fault"], "scores")
        self.assertRegex(text, r"The line agrees: warp_attention\.cu:\d+: ")
        # o of query 0, which sees one key, is right whatever the scale is: that says nothing for the line.
        _, report = self.diagnose("--dtype fp32 --seqlen 40 --head-dim 32 --mask causal")
        self.assertEqual([d["line"] for d in report["diagnosis"]], ["agrees"])
        text, report = self.diagnose(kernel.cases[0], "--no-lines")
        self.assertIsNone(report["line_divergence"])
        self.assertEqual([d["line"] for d in report["diagnosis"]], [None])
        self.assertNotIn("The line", text)

    def test_a_name_that_the_line_contradicts_is_none(self):
        # By its numbers a gain of 1.5: but half of every product is added thrice.
        kernel = zoo.load("warp_per_row")
        once = "for (int i = 0; i < kPerLane; ++i) acc[i] += "
        self.plant(kernel, once + "pj *", "for (int times = 0; times < 3; ++times) " + once + "0.5f * pj *")
        _, report = self.diagnose(kernel.cases[0], "--no-lines")
        self.assertEqual((report["diagnosis_verdict"], report["diagnosis"][0]["id"]), ("named", "gain"))
        text, report = self.diagnose(kernel.cases[0])
        self.assertEqual(report["diagnosis_verdict"], "disputed")
        self.assertEqual(report["diagnosis"][0]["line"], "otherwise")
        self.assertEqual(report["line_divergence"]["fault"], "keys")
        self.assertTrue(text.startswith("NOT CERTAIN: gain("), text)
        self.assertRegex(text, r"The line says otherwise: warp_attention\.cu:\d+: adds what was added before")

    def test_a_dump_holds_the_line(self):
        kernel = zoo.load("warp_per_row")
        self.plant(kernel, *EDITS["a summand more"][2:4])
        lines = self.trace(kernel.cases[0], "-o", "x.h5")["line_divergence"]
        shown = self.call("show", "x.h5", "--lines", "--json")
        self.assertEqual(shown.returncode, 1, shown.stderr)
        self.assertEqual(json.loads(shown.stdout)["line_divergence"], lines)
        text = self.call("show", "x.h5", "--lines")
        self.assertEqual(text.returncode, 1)
        self.assertIn("Where it goes wrong: adds what was added before", text.stdout)
        self.assertIn("What variables hold", text.stdout)
        self.assertEqual(self.call("show", "x.h5").returncode, 1)  # the values are there as before
        self.trace(kernel.cases[0], "-o", "y.h5", "--no-lines")
        without = self.call("show", "y.h5", "--lines")
        self.assertEqual((without.returncode, without.stdout), (2, ""))
        self.assertIn("y.h5 holds no lines", without.stderr)
        self.assertIn("--stage is about values", self.call("show", "x.h5", "--lines", "--stage", "qk").stderr)

    @long
    def test_every_block_that_a_row_depends_on_is_watched(self):
        self.build(zoo.load("paged_kv"))  # a block stores a key
        lines = self.trace("--heads 2 --kv-heads 1 --seqlen-q 2 --seqlen-k 150 --head-dim 32", "--lines")["line_divergence"]
        self.assertEqual((lines["answer"], lines["understood"]), ("none", lines["right"]))
        rows = {(read["input"], read["rows"]) for read in lines["reads"] if read["input"] != "q"}
        self.assertEqual(rows, {("k", "0-149 of 150"), ("v", "0-149 of 150")})

    # An adapter for the kernel alone of paged_kv. What it makes of the pages is `cache`.
    CACHE = """#include <attn_diag/kernels/bring.h>
#include <attn_diag/kernels/kv_cache.h>
#include "paged_attention.cu"
static void call(const attn_diag::Call& c) {
  attn_diag::KvCache<float> cache(c, {.page = PAGE_SIZE});
%s
  paged_attention<<<dim3(c.seqlen_q(), c.heads(), c.batch()), HEAD_SIZE, 0, c.stream()>>>(
      c.o<float>(), c.lse(), c.q<float>(), cache.k(), cache.v(), cache.table(), c.heads(), c.kv_heads(), c.seqlen_q(),
      c.seqlen_k(), cache.pages_per_batch(), c.scale());
}
ATTN_DIAG_EXPORT({.name = "cached", .call = call, .dtypes = fp32, .head_dims = {32}, .grouped_heads = true,
                  .other_seqlen_k = true, .tile = {1, 16}});
"""
    # A loop of the host.
    OWN_LOOP = """  const size_t n = (size_t)cache.pages() * c.kv_heads() * PAGE_SIZE * HEAD_SIZE;
  std::vector<float> from(n), to(n);
  cudaMemcpy(from.data(), cache.k(), n * sizeof(float), cudaMemcpyDeviceToHost);
  for (size_t i = 0; i < n; ++i) to[i] = from[i];
  cudaMemcpy(cache.k(), to.data(), n * sizeof(float), cudaMemcpyHostToDevice);"""

    def trace_cached(self, old, new, moved=""):
        kernel = zoo.load("paged_kv")
        kernel.sources = ["adapter.cu"]
        shutil.rmtree(self.folder / "source", ignore_errors=True)
        copy = self.folder / "source"
        shutil.copytree(kernel.folder, copy)
        source = copy / "paged_attention.cu"
        self.assertIn(old, source.read_text())
        source.write_text(source.read_text().replace(old, new, 1))
        (copy / "adapter.cu").write_text(self.CACHE % moved)
        self.build_in(kernel, copy, "--quiet")
        return self.trace("--batch 2 --heads 2 --kv-heads 1 --seqlen-q 2 --seqlen-k 70 --head-dim 32",
                          "--lines")["line_divergence"]

    @long
    def test_what_is_in_a_cache_is_known(self):
        lines = self.trace_cached("l = l * alpha + p;", "l = l * alpha + p;")
        self.assertEqual((lines["answer"], lines["understood"]), ("none", lines["right"]), lines["reason"])
        self.assertEqual({read["input"] for read in lines["reads"]}, {"q", "k", "v"})
        lines = self.trace_cached("k_cache[base + t * HEAD_SIZE + lane]", "k_cache[base + t * HEAD_SIZE + (lane ^ 1)]")
        self.assertIn("different columns", lines["what"])
        self.assertIn("(lane ^ 1)", lines["suspects"][0]["text"])

    # The same kernel, of a cache of codes whose scales lie in pages as well.
    CODED_CACHE = """#include <attn_diag/kernels/bring.h>
#include <attn_diag/kernels/kv_cache.h>
#include "coded.cu"
static void call(const attn_diag::Call& c) {
  attn_diag::CodedInput k = attn_diag::coded_k(c), v = attn_diag::coded_v(c);
  const attn_diag::KvCache<signed char> cache(c, {.page = PAGE_SIZE}, k, v);
  paged_attention<<<dim3(c.seqlen_q(), c.heads(), c.batch()), HEAD_SIZE, 0, c.stream()>>>(
      c.o<float>(), c.lse(), c.q<float>(), cache.k(), cache.k_scales(), cache.v(), cache.v_scales(), cache.table(), c.heads(),
      c.kv_heads(), c.seqlen_q(), c.seqlen_k(), cache.pages_per_batch(), c.scale());
}
ATTN_DIAG_EXPORT({.name = "coded", .call = call, .dtypes = fp32, .head_dims = {32}, .grouped_heads = true, .other_seqlen_k = true,
                  .k_codes = {CodeType::kInt8, ScalePer::kToken}, .v_codes = {CodeType::kInt8, ScalePer::kToken}, .tile = {1, 16}});
"""

    @long
    def test_codes_in_pages_have_their_scales_in_pages(self):
        text = (zoo.load("paged_kv").folder / "paged_attention.cu").read_text()
        text = text[:text.index("// Fills the cache")]
        for name in "k", "v":
            text = text.replace(f"const float *__restrict__ {name}_cache", f"const signed char *__restrict__ {name}_cache, const float *__restrict__ {name}_scale")
            text = text.replace(f"{name}_cache[base + t * HEAD_SIZE + lane]", f"{name}_cache[base + t * HEAD_SIZE + lane] * {name}_scale[base / HEAD_SIZE + t]")
        for old, new in ("", ""), ("v_scale[base / HEAD_SIZE + t]", "v_scale[t]"):
            (self.folder / "coded.cu").write_text(text.replace(old, new) if old else text)
            (self.folder / "adapter.cu").write_text(self.CODED_CACHE)
            built = self.call("build", "adapter.cu", "-o", "k.so", "--no-nvcc", "--no-lockstep")
            self.assertEqual(built.returncode, 0, built.stdout + built.stderr)
            report = self.trace("--batch 2 --heads 2 --kv-heads 1 --seqlen-q 2 --seqlen-k 70 --head-dim 32", "--lines")
            self.assertEqual(report["verdict"], "diverges" if old else "agrees")
            lines = report["line_divergence"]
            if old:
                self.assertIn(new, lines["suspects"][0]["text"], lines["what"])
            else:
                self.assertEqual((lines["answer"], lines["understood"]), ("none", lines["right"]), lines["reason"])

    @long
    def test_of_what_a_loop_of_the_host_moves_no_line_is_told(self):
        for new in ["l = l * alpha + p;", "l = l * alpha - p;"]:
            lines = self.trace_cached("l = l * alpha + p;", new, self.OWN_LOOP)
            self.assertEqual((lines["answer"], lines["suspects"]), ("unsure", []), lines["what"])
            self.assertIn("code of the host copies k, and", lines["reason"])

    def test_an_output_that_the_host_converts_has_the_line_of_the_kernel(self):
        kernel = zoo.load("warp_per_row")
        copy = self.folder / "source"
        shutil.copytree(kernel.folder, copy)
        kernels = copy / kernel.sources[0]
        kernels.write_text(kernels.read_text().replace("acc[i] / l;", "acc[i] / m;", 1))
        adapter = copy / "adapter.cu"
        text = adapter.read_text()
        self.assertEqual(text.count("c.o<float>()"), 1)
        begin = text.index("  ", text.index("static void call"))
        end = text.index("}", text.index("c.o<float>()"))
        adapter.write_text("#include <attn_diag/kernels/device_buffer.h>\n#include <vector>\n" + text[:begin] +
                           "  const std::size_t n = std::size_t(c.batch()) * c.heads() * c.seqlen_q() * c.head_dim();\n"
                           "  attn_diag::DeviceBuffer<float> wide(n);\n" +
                           text[begin:end].replace("c.o<float>()", "wide.data()") +
                           "  std::vector<float> from(n), to(n);\n"
                           "  cudaMemcpy(from.data(), wide.data(), n * sizeof(float), cudaMemcpyDeviceToHost);\n"
                           "  for (std::size_t i = 0; i < n; ++i) to[i] = from[i] + 0.0f;\n"
                           "  cudaMemcpy(c.o<float>(), to.data(), n * sizeof(float), cudaMemcpyHostToDevice);\n" + text[end:])
        self.build_in(kernel, copy)
        lines = self.trace(kernel.cases[0])["line_divergence"]
        self.assertIn("acc[i] / m;", lines["suspects"][0]["text"])

    def test_an_output_in_fp32_that_is_rounded_behind_the_call_has_the_line_of_the_kernel(self):
        (self.folder / "source").mkdir()
        source, adapter = self.folder / "source/wide.cu", self.folder / "source/adapter.cu"
        style = FIXTURES.parent / "harness/toolchain/adapt/testing/styles/wide_output.cu"
        source.write_text(style.read_text().replace("l = l * a + p;", "l = l + p;", 1))
        for words in (["adapt", source, "-o", adapter],
                      ["build", source, "--adapter", adapter, "-o", "k.so", "--no-nvcc", "--no-lockstep"]):
            done = self.call(*words)
            self.assertEqual(done.returncode, 0, done.stderr)
        lines = self.trace("--seqlen 40 --head-dim 32")["line_divergence"]
        self.assertEqual(lines["suspects"][0]["text"], "l = l + p;")

    @long
    def test_values_of_a_variable(self):
        kernel = zoo.load("warp_per_row")
        self.build(kernel)
        words = ["trace", "--kernel", "./k.so", *kernel.cases[0].split(), "--no-history", "--variable"]
        right = self.call(*words, "part", "--json")
        self.assertEqual(right.returncode, 0, right.stderr)
        table = json.loads(right.stdout)["variable_values"]
        self.assertEqual(table["wrong"], 0)
        threads = {value["thread"] for value in table["values"]}
        self.assertEqual(threads, set(range(len(threads))))  # every lane of some warps, a row each
        self.assertEqual(len(threads) % 32, 0)
        # Lane 3 multiplies column 3 of q and k: one number a key.
        lane = [value for value in table["values"] if value["thread"] == 3]
        self.assertRegex(lane[0]["holds"], r"^q\.k\[.*query \d+, key 0, 1 of 32 columns\]$")
        self.assertRegex(lane[7]["holds"], r"key 7, 1 of 32 columns\]$")
        for value in lane:
            self.assertAlmostEqual(value["value"], value["expected"], delta=1e-5)
        text = self.call(*words, "part")
        self.assertRegex(text.stdout, r"AGREES: [\d,]+ numbers of part in block \d+ are what they should be")
        shutil.rmtree(self.folder / "source")
        self.plant(kernel, *EDITS["a summand more"][2:4])
        wrong = self.call(*words, "l")
        self.assertEqual(wrong.returncode, 1, wrong.stderr)
        self.assertIn("adds what was added before", wrong.stdout)
        self.assertIn("!", wrong.stdout)
        source = (self.folder / "source" / "warp_attention.cu").read_text().splitlines()
        line = 1 + next(i for i, text in enumerate(source) if "l += pj;" in text)
        of_line = json.loads(self.call(*words, f"l:{line}", "--json").stdout)["variable_values"]["values"]
        self.assertEqual({value["line"] for value in of_line}, {line})
        none = self.call(*words, "lane_sum")
        self.assertEqual(none.returncode, 2)
        self.assertIn("no variable lane_sum", none.stderr)
        self.assertEqual(self.call(*words, "l", "-o", "x.h5").returncode, 2)
        self.assertEqual(self.call(*words[:-1], "--block", "1").returncode, 2)

    # What ends the process, and what the executor catches: what is stored, what is said, and of what it is made.
    CRASHES = {"an address that is not mapped": ("k[kv_at + ((long long)row << 26)]", "SIGSEGV", {"kv_at", "row"}),
               "an integer divided by zero": ("(lane / (row - q_len / 2))", "SIGFPE", {"row"}),
               "an address that cannot be one": ("k[kv_at + ((long long)row << 40)]", "cannot be one", {"kv_at", "row"})}

    def test_a_crash_has_its_line_too(self):
        kernel = zoo.load("warp_per_row")
        for what, (stored, said, made_of) in self.CRASHES.items():
            with self.subTest(what):
                shutil.rmtree(self.folder / "source", ignore_errors=True)
                self.plant(kernel, "acc[i] / l;", f"acc[i] / l * {stored};")
                words = ["trace", "--kernel", "./k.so", *kernel.cases[0].split(), "--no-history"]
                out = self.call(*words, "--json")
                self.assertEqual(out.returncode, 2, out.stderr)
                lines = json.loads(out.stdout)["line_divergence"]
                self.assertEqual(lines["answer"], "unsure")
                self.assertIn(said, lines["what"])
                self.assertIn(stored, lines["suspects"][0]["text"])
                self.assertLessEqual(made_of, {suspect["variable"] for suspect in lines["suspects"][1:]})

    def test_of_a_shipped_kernel_it_says_why_not(self):
        out = self.call("trace", "--kernel", "fa1", "--seqlen", "16", "--no-history", "--json", "--lines")
        lines = json.loads(out.stdout)["line_divergence"]
        self.assertEqual(lines["answer"], "not_looked")
        self.assertIn("attn-diag build", lines["reason"])

    def test_sources_that_are_gone(self):
        kernel = zoo.load("warp_per_row")
        self.plant(kernel, *EDITS["a summand more"][2:4])
        shutil.rmtree(self.folder / "source")
        lines = self.trace(kernel.cases[0])["line_divergence"]
        self.assertEqual(lines["answer"], "not_looked")
        self.assertIn("source", lines["reason"])


class Edit(LinesTest):
    """One of the edits."""

    def __init__(self, name):
        super().__init__()
        self.name = name

    def runTest(self):
        if self.name in EDITS:
            self.edit_is_told(*EDITS[self.name])
        else:
            self.edit_is_told(*CHECKED_EDITS[self.name], "--quiet")


def load_tests(loader, tests, pattern):
    return loader.loadTestsFromTestCase(LinesTest)


if __name__ == "__main__":
    main(LinesTest, sys.argv[2:], {name: Edit(name) for name in (*EDITS, *CHECKED_EDITS)})
