// What gpu_check found. Records; report.h renders them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/report/json.h"

namespace attn_diag::gpu_check {

using report::Json;

enum class Verdict : std::uint8_t {
  kPassed,
  kFailed,
  kSkipped,  // could not run here: why says why
  kNotSeen,  // a race that this GPU does not show; no failure
};

struct Check {
  std::string name;
  Verdict verdict = Verdict::kFailed;
  std::string why;        // unless passed
  std::string reproduce;  // one shell line, if it failed
};

struct Section {
  std::string name;   // "faults"
  std::string title;  // what it checks, one line
  std::vector<Check> checks;
  std::string skipped;             // why the whole section was not run; "" if it was
  std::vector<std::string> notes;  // odd things worth saying
  Json figures;                    // of the benchmark: the report of `attn-diag bench`
  std::string text;                // output to show as it is, such as the doctor's
  double seconds = 0;

  int count(Verdict verdict) const;
  // A check failed, or the section ran and checked nothing.
  bool failed() const;
};

struct Report {
  std::string created;  // ISO 8601
  std::string commit;   // of the bundle or the checkout, "" if unknown
  bool dirty = false;
  std::string gpu, driver, cuda_runtime, cuda_driver;  // "" if there is no GPU
  std::string no_gpu;  // why nothing could run on a GPU; "" if it could
  Json toolchain;      // of the bundle's manifest, or null
  bool quick = false;
  std::vector<Section> sections;
  double seconds = 0;
  bool complete = false;  // false in files that are written as sections end

  int exit_code() const;  // 0 all that ran passed, 1 something failed, 2 no GPU
};

}  // namespace attn_diag::gpu_check
