// attn-diag build: a kernel library from a user's sources.
#include <fmt/format.h>

#include "harness/report/build_text.h"
#include "harness/toolchain/build/build.h"
#include "tools/attn_diag/output.h"
#include "tools/attn_diag/session.h"

namespace attn_diag::cli {
namespace {

build::BuildRequest build_request(const Flags& flags) {
  build::BuildRequest request;
  request.sources.assign(flags.files.begin(), flags.files.end());
  request.adapter = flags.build.adapter;
  request.output = flags.output;
  if (flags.output.empty() && !flags.build.explain)
    throw Error(
        "No output was named. Expected -o FILE, as attn-diag build kernel.cu -o kernel.so.");
  request.write_files = !flags.output.empty();
  if (!flags.backend.empty() && flags.backend != "host" && flags.backend != "cuda")
    throw Error(fmt::format("--backend {}: expected host or cuda.", flags.backend));
  if (flags.backend == "cuda") request.backend = build::Backend::kCuda;
  if (request.backend == build::Backend::kCuda && !request.write_files)
    throw Error(
        "--explain without -o says what is translated for backend host; for cuda nothing is.");
  request.includes = flags.build.includes;
  request.defines = flags.build.defines;
  request.compiler_flags = flags.build.compiler_flags;
  if (!flags.build.arch.empty()) request.arch = flags.build.arch;
  if (!flags.build.standard.empty()) request.standard = flags.build.standard;
  if (request.standard != "c++17" && request.standard != "c++20" && request.standard != "c++23")
    throw Error(fmt::format("--std {}: expected c++17, c++20 or c++23.", request.standard));
  request.lockstep = !flags.build.no_lockstep;
  request.ask_nvcc = !flags.build.no_nvcc;
  return request;
}

}  // namespace

CommandResult build_command(const Session& session) {
  const build::BuildRequest request = build_request(session.flags);
  const build::Settings settings = build::load_settings(build::settings_file_of_program());
  const build::BuildRecord record = build::build_library(request, settings);
  CommandResult outcome;
  const bool usable = record.ok && !record.missing_adapter && !record.refused_by_nvcc;
  outcome.code = usable ? ExitCode::kAgrees : ExitCode::kCouldNotCompare;
  if (session.flags.json) {
    outcome.out = report::dump_json(
        report::build_json(record, {"build", session.this_command(), ATTN_DIAG_VERSION}));
    return outcome;
  }
  write_stderr(report::build_messages(record));
  if (!session.flags.quiet)
    outcome.out = report::build_text(record, session.flags.build.explain, session.style);
  if (record.ok && record.refused_by_nvcc)
    write_stderr(
        "attn-diag: nvcc refuses what was built for the host: it runs here, but not on a GPU. "
        "--no-nvcc does not ask.\n");
  if (record.missing_adapter)
    write_stderr(fmt::format(
        "attn-diag: '{}' was written, but has no adapter: it exports no attn_diag_kernel_library, "
        "which says how to call its kernels. Draft one with attn-diag adapt {}, and add it with "
        "--adapter.\n",
        request.output.string(), shell_quote(session.flags.files.front())));
  return outcome;
}

}  // namespace attn_diag::cli
