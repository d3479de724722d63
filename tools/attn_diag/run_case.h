// One case, run and judged: a row of `run` and of `sweep`.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/report/matrix.h"
#include "tools/attn_diag/cases.h"
#include "tools/attn_diag/run_history.h"
#include "tools/attn_diag/session.h"

namespace attn_diag::cli {

// Libraries stay loaded from case to case.
class Kernels {
 public:
  const Kernel& get(const RequestedCase& c);

 private:
  std::map<std::string, Kernel> x_loaded;
};

struct Run {
  RequestedCase what;
  report::MatrixRow row;
  std::optional<Capture> capture;
  bool refused = false;  // by the kernel's own code
};

// An Error is a row that is unsupported, or has failed.
Run run_one(RequestedCase c, Kernels& kernels, const Tolerance& tolerance, History& history,
            const Session& session);

}  // namespace attn_diag::cli
