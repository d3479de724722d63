// Reports as JSON. Numbers that JSON cannot write are the strings "nan", "inf" and "-inf".
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attn_diag/harness/compare.h"
#include "attn_diag/harness/run.h"
#include "attn_diag/harness/trace.h"

namespace attn_diag::report {

using Json = nlohmann::ordered_json;

// Written into every report; raised when a key changes its meaning or goes away.
inline constexpr const char* kJsonSchema = "attn-diag-report/1";

Json json_number(double x);
Json to_json(const Problem& problem);
Json to_json(const Geometry& geometry);
Json to_json(const Region& region);
Json to_json(const Provenance& provenance);
Json to_json(const TensorComparison& comparison);

// What every verdict has: schema, version, command, reproduce.
struct CommandContext {
  std::string command;     // "trace"
  std::string reproduce;   // one shell line
  std::string version;     // of attn-diag
  std::string check = {};  // of a trace: the shell line that looks for races and unwritten reads
};
Json json_head(const CommandContext& context, Answer answer, bool stale);
Json json_head(const CommandContext& context);  // of what has no verdict of this kind

// The stages of a comparison, each with its tensors, as `run` and `compare` report them.
Json stages_json(const Comparison& comparison);
// Inputs that the kernel wrote: input, cells, and the first of them with what it was and is.
Json input_writes_json(const Capture& capture);
// Coverage of every tensor that has a fault.
Json coverage_json(const Capture& capture);

Json trace_json(const TraceResult& result, const CommandContext& context);

// One line of text, ending with a newline. Bytes that are not UTF-8 become U+FFFD.
std::string dump_json(const Json& json);

}  // namespace attn_diag::report
