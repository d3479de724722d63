// The fields of a capture's records by the names they have in a dump. Written once: the writer, the
// reader and the check that two captures can be compared all walk the same lists.
#pragma once

#include <string>

#include "attn_diag/harness/capture.h"

namespace attn_diag {

// The spelling of a value in dumps and messages, as the command's flags have it.
std::string text(DType dtype);       // "fp16"
std::string text(Layout layout);     // "BHSD"
std::string text(Frame frame);       // "running"
std::string text(Part part);         // "attention", "scores", "from_scores", "from_probs"
std::string text(const Mask& mask);  // "none", "causal:top_left", "window:3,0"
// The reverse. False: the text is none of these spellings.
bool from_text(const std::string& s, DType& dtype);
bool from_text(const std::string& s, Layout& layout);
bool from_text(const std::string& s, Frame& frame);
bool from_text(const std::string& s, Part& part);
bool from_text(const std::string& s, Mask& mask);

// v(name, field) for each field; P is Problem or const Problem, and so on.
template <class P, class V>
void visit_problem(P& p, V&& v) {
  v("batch", p.batch);
  v("heads", p.heads);
  v("kv_heads", p.kv_heads);
  v("seqlen_q", p.seqlen_q);
  v("seqlen_k", p.seqlen_k);
  v("head_dim", p.head_dim);
  v("head_dim_v", p.head_dim_v);
  v("dtype", p.dtype);
  v("layout", p.layout);
  v("mask", p.mask);
  v("softmax_scale", p.softmax_scale);
}

template <class G, class V>
void visit_geometry(G& g, V&& v) {
  v("block_m", g.tile.block_m);
  v("block_n", g.tile.block_n);
  v("num_splits", g.num_splits);
  v("tiles_per_split", g.tiles_per_split);
  v("frame", g.frame);
  v("has_split_merge", g.has_split_merge);
  v("skips_masked_tiles", g.skips_masked_tiles);
}

template <class A, class V>
void visit_arithmetic(A& a, V&& v) {
  v("accumulate", a.accumulate);
  v("dot_ulp", a.dot_ulp);
  v("scores", a.scores);
  v("probs", a.probs);
  v("l_from_rounded_probs", a.l_from_rounded_probs);
  v("partial", a.partial);
  v("partial_stats", a.partial_stats);
  v("output", a.output);
  v("scaled_q", a.scaled_q);
  v("scale_applied_to_q", a.scale_applied_to_q);
  v("exp_ulp", a.exp_ulp);
  v("exp_ulp_per_x", a.exp_ulp_per_x);
  v("exp_flush", a.exp_flush);
  v("log_ulp", a.log_ulp);
  v("log_abs", a.log_abs);
  v("part", a.part);
}

// The plain fields; `sources` is a list and handled apart.
template <class P, class V>
void visit_provenance(P& p, V&& v) {
  v("kernel", p.kernel);
  v("library", p.library);
  v("build_id", p.build_id);
  v("compiler", p.compiler);
  v("flags", p.flags);
  v("backend", p.backend);
  v("device", p.device);
  v("driver", p.driver);
  v("gate", p.gate);
  v("schedule", p.schedule);
  v("mma_order", p.mma_order);
  v("async_copies", p.async_copies);
  v("command_line", p.command_line);
  v("created", p.created);
  v("generator_version", p.generator_version);
  v("host", p.host);
  v("inputs", p.inputs);
  v("seed", p.seed);
  v("input_scale", p.input_scale);
}

}  // namespace attn_diag
