// gpu-check.json and gpu-check.md.
#pragma once

#include <string>

#include "tools/gpu_check/record.h"

namespace attn_diag::gpu_check {

inline constexpr const char* kSchema = "attn-diag-gpu-check/1";

Json to_json(const Report& report);
std::string to_markdown(const Report& report);
// One line: "41 passed, 0 failed, 2 skipped, 1 race not seen in 95 s".
std::string summary_line(const Report& report);

}  // namespace attn_diag::gpu_check
