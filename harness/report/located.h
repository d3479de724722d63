// Findings with a file and a line, in the formats that editors, GitHub and code scanning read. Each kind of record
// becomes one list of them; each format is one function of that list.
#pragma once

#include <string>
#include <vector>

#include "attn_diag/harness/trace.h"
#include "harness/report/check_report.h"
#include "harness/report/json.h"

namespace attn_diag::report {

struct LocatedPlace {
  std::string file;          // as the compiler was given it, mostly absolute; empty: not known
  int line = 0, column = 0;  // from 1; column 0: not known
  std::string message;       // what this place has to do with it
};

struct LocatedFinding {
  enum class Level { kError, kWarning, kNote };
  Level level = Level::kError;
  std::string rule;    // a word that attn-diag explain knows: "race"
  LocatedPlace place;  // with what is wrong
  std::vector<LocatedPlace> related;
  std::string accepted;  // why it does not count; empty: it does
};
const char* name(LocatedFinding::Level level);  // "error", "warning", "note"

// Errors of check are errors, latent findings warnings, benign ones notes; the other access is related.
std::vector<LocatedFinding> located(const CheckView& view);
// For a trace that does not agree: the first suspected line, with the others as related. Where no line is known,
// the verdict without a place.
std::vector<LocatedFinding> located(const TraceResult& result);
// For a run that was refused because of `why`.
std::vector<LocatedFinding> located(const LineDivergence& lines, const std::string& why,
                                    const Provenance& library);
// A finding without a place, such as a crash.
LocatedFinding unplaced(std::string rule, std::string message);

// `file` as seen from `folder`, where it is below it; else as it is.
std::string file_below(const std::string& file, const std::string& folder);

// "kernel.cu:12:3: error: ... [race]" and "kernel.cu:9: note: ...", as compilers say it. Accepted findings are left out.
std::string gcc_text(const std::vector<LocatedFinding>& findings, const std::string& folder);
// "::error file=kernel.cu,line=12,title=attn-diag%3A race::..."; `folder` is the root of the checkout.
std::string github_text(const std::vector<LocatedFinding>& findings, const std::string& folder);

struct SarifContext {
  std::string version;  // of attn-diag
  std::string command;  // the shell line
  std::string folder;   // files below it become relative URIs
  int exit_code = 0;
};
// One log of SARIF 2.1.0 with one run.
Json sarif(const std::vector<LocatedFinding>& findings, const SarifContext& context);

}  // namespace attn_diag::report
