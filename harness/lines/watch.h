// A watch build of a kernel's sources, and a run of it.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attn_diag/harness/experiment.h"
#include "attn_diag/harness/host/check.h"
#include "attn_diag/harness/host/values.h"
#include "attn_diag/harness/lines.h"
#include "harness/toolchain/build/build.h"

namespace attn_diag::lines {

// The kernel, built so that its numbers tell where they come from, in a folder that goes with the last copy.
struct WatchBuild {
  std::optional<Kernel> kernel;
  std::string reason;  // why there is none
  std::shared_ptr<const void> folder;
};
// `only`: the kernels that it is built for, as build::BuildRequest::only_kernels; empty: all.
WatchBuild make_watch_build(const Kernel& of, std::vector<std::string> only = {});
// One kernel of those that a request would build.
WatchBuild make_watch_build(build::BuildRequest request, const std::string& kernel);

// As lines.h has it, of a kernel whose watch build is there: for many cases of one kernel.
LineDivergence trace_lines(const WatchBuild& build, const Experiment& experiment, LinesBy by,
                           const CheckResult* checked = nullptr);

struct WatchedRun {
  host::ValueGraph graph;    // outputs: o, lse
  std::vector<std::byte> o;  // as the kernel wrote it
  DType o_type = DType::kFp32;
  std::vector<float> lse;
  std::string reason;                           // why nothing was seen; empty: it was
  std::optional<host::SourcePlace> illegal;     // of an access that ended it
  std::optional<host::SourcePlace> unlaunched;  // of a launch that was refused
};
// Only the blocks of the list are watched, by number among all that ran; all: every block. `patience`: seconds of CPU
// time that a thread may run without reaching a synchronisation; 0: as everywhere. Throws KernelLeftOut.
WatchedRun watch_run(const Experiment& watched,
                     const std::optional<std::vector<std::uint32_t>>& blocks, double patience = 0);

}  // namespace attn_diag::lines
