#include "harness/report/doctor_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "harness/report/table.h"

namespace attn_diag::report {
namespace {

std::string backend_line(const BackendHealth& b, const Style& style) {
  const std::string state =
      b.works() ? paint(style, Colour::kGreen, "works") : paint(style, Colour::kRed, "cannot run");
  const std::string detail =
      b.works() ? fmt::format("{} ran and agrees with the reference", b.ran) : "see below";
  return fmt::format("  {:<5} {}: {}\n", b.name, state, detail);
}

std::string toolkit_text(const Toolkit& t) {
  return t.nvcc.empty() ? "none" : fmt::format("nvcc {} ({})", t.version, t.nvcc);
}

std::string gpu_text(const Gpu& g) {
  return fmt::format("{}: {}, {} multiprocessors, {} of shared memory per block",
                     attn_diag::text(g), bytes(static_cast<double>(g.memory)), g.multiprocessors,
                     bytes(static_cast<double>(g.shared_memory)));
}

std::string or_none(const std::string& s) { return s.empty() ? "none" : s; }

std::string machine_text(const Health& h) {
  const auto line = [](std::string_view what, const std::string& text) {
    return fmt::format("  {:<9} {}\n", what, text);
  };
  std::string s = "Machine\n";
  s += line("cores", fmt::format("{}", h.cores));
  s += line("driver", or_none(h.gpus.driver()));
  if (h.gpus.gpus.empty()) s += line("GPU", "none");
  for (const Gpu& g : h.gpus.gpus) s += line("GPU", gpu_text(g));
  s += line("toolkit", toolkit_text(h.toolkit_found));
  s += "\nThis program\n";
  s += line("compiler", h.compiler);
  s += line("HDF5", h.hdf5_running == h.hdf5_built
                        ? h.hdf5_running
                        : fmt::format("{}, built with {}", h.hdf5_running, h.hdf5_built));
  s += line("toolkit", toolkit_text(h.toolkit_built));
  s += line("CUDA", or_none(h.gpus.runtime) + (h.gpus.runtime.empty() ? "" : " runtime"));
  return s;
}

std::string libraries_text(const Health& h, const Style& style) {
  std::string s = "Kernel libraries\n";
  Table table({"library", "kernels", "built by", "code for", "runs here"});
  std::size_t faults = 0;
  for (const LibraryHealth& l : h.libraries) {
    if (!l.library.fault.empty() && l.why_not.empty() && !l.library.stale) {
      ++faults;  // all alike: counted
      continue;
    }
    const bool good = l.why_not.empty() && !l.library.stale;
    table.add({std::filesystem::path(l.library.path).filename().string(),
               join(l.library.kernels, ", "), l.library.compiler, l.library.architectures,
               paint(style, good ? Colour::kGreen : Colour::kRed,
                     !l.why_not.empty() ? "no"
                     : l.library.stale  ? "STALE"
                                        : "yes")});
  }
  if (table.rows() > 0) s += table.text(style);
  if (faults > 0)
    s += fmt::format("  and {} that can run here\n",
                     plural(static_cast<std::int64_t>(faults), "fault kernel"));
  if (h.libraries.empty()) s += "  none found\n";
  for (const std::string& directory : h.searched) s += "  searched: " + directory + '\n';
  return s;
}

Json text_or_null(const std::string& s) { return s.empty() ? Json(nullptr) : Json(s); }

Json toolkit_json(const Toolkit& t) {
  if (t.nvcc.empty()) return nullptr;
  return {{"nvcc", t.nvcc}, {"version", t.version}};
}

Json backend_json(const BackendHealth& b) {
  return {{"name", b.name},
          {"can_run", b.works()},
          {"ran", text_or_null(b.ran)},
          {"why_not", text_or_null(b.why_not)}};
}

}  // namespace

std::string doctor_text(const Health& h, const std::string& version, const Style& style) {
  std::string s = fmt::format("attn-diag {}\n\nBackends\n", version);
  s += backend_line(h.host, style) + backend_line(h.cuda, style);
  s += '\n' + machine_text(h) + '\n' + libraries_text(h, style);
  if (h.lacks.empty()) return s + "\nEverything can run here.\n";
  s += "\nWhat cannot be done here, and what to do\n";
  for (const Lack& lack : h.lacks)
    s += "  " + wrap(lack.what + ": " + lack.why, style.width - 2, 4) + '\n';
  return s;
}

Json doctor_json(const Health& h, const std::string& version) {
  Json j;
  j["schema"] = kJsonSchema;
  j["version"] = version;
  j["command"] = "doctor";
  j["backends"] = {backend_json(h.host), backend_json(h.cuda)};
  j["cores"] = h.cores;
  j["driver"] = text_or_null(h.gpus.driver());
  j["gpus"] = Json::array();
  for (const Gpu& g : h.gpus.gpus)
    j["gpus"].push_back({{"name", g.name},
                         {"compute_capability", fmt::format("{}.{}", g.major, g.minor)},
                         {"memory_bytes", g.memory},
                         {"multiprocessors", g.multiprocessors},
                         {"shared_memory_per_block_bytes", g.shared_memory}});
  j["toolkit_found"] = toolkit_json(h.toolkit_found);
  j["toolkit_built"] = toolkit_json(h.toolkit_built);
  j["cuda_runtime"] = text_or_null(h.gpus.runtime);
  j["compiler"] = h.compiler;
  j["hdf5"] = h.hdf5_running;
  j["hdf5_built"] = h.hdf5_built;
  j["libraries"] = Json::array();
  for (const LibraryHealth& l : h.libraries) {
    // One verdict a GPU: the first is the one that is used.
    Json runs_on = Json::array();
    if (l.library.backend == "cuda")
      for (const Gpu& g : h.gpus.gpus)
        runs_on.push_back({{"gpu", attn_diag::text(g)},
                           {"why_not", text_or_null(why_not_on(l.library.architectures, g))}});
    j["libraries"].push_back({{"path", l.library.path},
                              {"kernels", l.library.kernels},
                              {"fault", text_or_null(l.library.fault)},
                              {"backend", l.library.backend},
                              {"lockstep", l.library.lockstep},
                              {"compiler", text_or_null(l.library.compiler)},
                              {"architectures", text_or_null(l.library.architectures)},
                              {"gpus", runs_on},
                              {"stale", l.library.stale},
                              {"can_run", l.why_not.empty()},
                              {"why_not", text_or_null(l.why_not)}});
  }
  j["searched"] = h.searched;
  j["lacks"] = Json::array();
  for (const Lack& lack : h.lacks) j["lacks"].push_back({{"what", lack.what}, {"why", lack.why}});
  return j;
}

}  // namespace attn_diag::report
