// What `attn-diag adapt` says of a draft, as text and as JSON.
#pragma once

#include <string>

#include "harness/report/json.h"
#include "harness/report/text.h"
#include "harness/toolchain/adapt/adapt.h"

namespace attn_diag::report {

// What was found, guessed and not known, and what to check first: for stderr, beside the adapter.
std::string adapt_notes(const adapt::Draft& draft, const Style& style);
Json adapt_json(const adapt::Draft& draft, const CommandContext& context);

}  // namespace attn_diag::report
