// Gate 0 of a trace: what moves, in words.
#pragma once

#include <string>

#include "attn_diag/harness/sanity.h"
#include "harness/report/json.h"
#include "harness/report/text.h"

namespace attn_diag::report {

// "the result depends on what was in the workspace before the run: an uninitialised read"; empty unless
// the result moves.
std::string sanity_headline(const Sanity& sanity);
// What follows the headline where the result moves by more than rounding: "; right in lockstep, and so most likely on
// a GPU". `where`: what is wrong even where the result holds still, if that was looked at.
std::string standing_text(const Sanity& sanity, const std::string& where = "");
// What was run and what came out, and the command that finds where; empty where that was not checked.
std::string sanity_text(const Sanity& sanity, const std::string& check, const Style& style);
// `check`: as in sanity_text, null where nothing moves.
Json to_json(const Sanity& sanity, const std::string& check);

}  // namespace attn_diag::report
