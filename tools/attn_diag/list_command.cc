// attn-diag list: what there is, and whether it can run here.
#include <fmt/format.h>

#include <map>
#include <set>

#include "attn_diag/harness/gpu.h"
#include "attn_diag/harness/host/executor.h"
#include "attn_diag/harness/kernel.h"
#include "attn_diag/harness/run.h"
#include "harness/backends/cuda/run_on_gpu.h"
#include "harness/base/helper.h"
#include "harness/doctor/doctor.h"
#include "harness/library/support.h"
#include "harness/report/json.h"
#include "harness/report/table.h"
#include "tools/attn_diag/session.h"

namespace attn_diag::cli {
namespace {

using report::Colour;
using report::Json;

struct Entry {
  LibraryEntry library;
  std::string spec;     // what --kernel takes
  std::string state;    // "ready", "STALE", "cannot be loaded: ..."
  std::string why_not;  // of a cuda build: why it cannot run here
  bool usable = false, lockstep = false;
  std::string summary;
  std::vector<std::string> tiles, gates, exempt;
  std::vector<std::string> supports;  // as the kernel declares; empty: it does not say
  bool takes_num_splits = false;
};

std::string text(const char* s) { return s == nullptr ? "" : s; }

void describe(Entry& e, const KernelInfo& k) {
  e.summary = text(k.summary);
  e.takes_num_splits = k.takes_num_splits;
  if (k.support != nullptr) e.supports = support_words(*k.support);
  for (const std::string& words : convention_words(k.conventions)) e.supports.push_back(words);
  for (const std::string& words : part_words(k)) e.supports.push_back(words);
  for (int i = 0; i < k.num_tiles; ++i)
    e.tiles.push_back(fmt::format("{}x{}", k.tiles[i].block_m, k.tiles[i].block_n));
  for (std::size_t g = 0; g < kGateNames.size(); ++g)
    if (has_gate(k, static_cast<Gate>(g))) e.gates.emplace_back(kGateNames[g]);
  for (const TensorInfo& t : kTensors) {
    const TensorExposure& x = k.exposure[static_cast<std::size_t>(t.id)];
    if (!x.exposed) e.exempt.push_back(fmt::format("{}: {}", t.name, text(x.exempt_reason)));
  }
}

// In a helper: a library may do anything when it is loaded and asked.
Bytes what_loading_tells(const LibraryEntry& library, const std::string& kernel) {
  const Kernel loaded = Kernel::load(library.path + ":" + kernel, library.backend);
  Entry e;
  describe(e, loaded.info());
  WireWriter to;
  to.text(e.summary).truth(e.takes_num_splits);
  return to.texts(e.supports).texts(e.tiles).texts(e.gates).texts(e.exempt).take();
}

void note(const Bytes& told, Entry& e) {
  WireReader from(told);
  e.summary = from.text();
  e.takes_num_splits = from.truth();
  e.supports = from.texts();
  e.tiles = from.texts();
  e.gates = from.texts();
  e.exempt = from.texts();
}

Entry entry_of(const LibraryEntry& library, const std::string& kernel) {
  Entry e;
  e.library = library;
  e.spec = library.spec(kernel);
  e.why_not = why_not_here(library, gpu_state());
  HelperLimits limits;
  limits.seconds_per_answer = kSecondsToLoad;
  try {
    Helper helper(limits, [&](const Bytes&) { return what_loading_tells(library, kernel); });
    note(helper.ask({}), e);
    e.usable = e.why_not.empty();
    e.state = library.stale             ? "STALE: sources changed since the build"
              : !e.usable               ? "cannot run here"
              : library.sources_missing ? "ready; sources not found"
                                        : "ready";
  } catch (const HelperLost& lost) {
    e.state = fmt::format("cannot be loaded: its own code failed: {}.", lost.what());
  } catch (const Error& error) {
    e.state = fmt::format("cannot be loaded: {}", error.what());
  }
  return e;
}

// Whether the instrumented build lies beside a library that was named by its path.
bool has_lockstep(const LibraryEntry& library) {
  HelperLimits limits;
  limits.seconds_per_answer = kSecondsToLoad;
  try {
    Helper helper(limits, [&](const Bytes&) {
      Kernel::load(library.path + ":" + library.kernels.front(), "host", true);
      return Bytes();
    });
    helper.ask({});
    return true;
  } catch (const HelperLost&) {
    return false;
  } catch (const Error&) {
    return false;
  }
}

// "./x.so:name" -> "./x.so".
std::string library_of(const std::string& spec) {
  const std::size_t end = spec.rfind(".so:");
  return end == std::string::npos ? spec : spec.substr(0, end + 3);
}

// The kernels of the libraries named, or if none are, of all that are found.
std::vector<Entry> entries(const std::vector<std::string>& named) {
  std::vector<Entry> all;
  std::map<std::string, bool> lockstep;  // by backend and stem
  std::vector<LibraryEntry> libraries;
  for (const std::string& spec : named) libraries.push_back(describe_library(library_of(spec)));
  if (named.empty()) libraries = list_libraries();
  for (const LibraryEntry& library : libraries)
    if (library.lockstep && library.problem.empty())
      lockstep[library.backend + "/" + library.file_stem] = true;
  for (const LibraryEntry& library : libraries) {
    if (library.lockstep) continue;  // the same kernels, built for another schedule
    if (!library.problem.empty()) {
      Entry e;
      e.library = library;
      e.spec = library.file_stem;
      e.state = "cannot be loaded: " + library.problem;
      all.push_back(e);
    }
    for (const std::string& kernel : library.kernels) {
      all.push_back(entry_of(library, kernel));
      all.back().lockstep = lockstep.count(library.backend + "/" + library.file_stem) > 0 ||
                            (!named.empty() && has_lockstep(library));
    }
  }
  return all;
}

Json entry_json(const Entry& e) {
  Json j;
  j["name"] = e.spec;
  j["fault"] = e.library.fault.empty() ? Json(nullptr) : Json(e.library.fault);
  j["backend"] = e.library.backend;
  j["library"] = e.library.path;
  j["can_run"] = e.usable;
  j["state"] = e.state;
  j["why_not"] = e.why_not.empty() ? Json(nullptr) : Json(e.why_not);
  j["architectures"] =
      e.library.architectures.empty() ? Json(nullptr) : Json(e.library.architectures);
  j["stale"] = e.library.stale;
  j["sources_missing"] = e.library.sources_missing;
  j["lockstep"] = e.lockstep;
  j["summary"] = e.summary;
  j["tiles"] = e.tiles;
  j["gates"] = e.gates;
  j["takes_num_splits"] = e.takes_num_splits;
  j["exempt"] = e.exempt;
  j["declares"] = e.supports;
  return j;
}

std::string list_json(const std::vector<Entry>& all) {
  Json j;
  j["schema"] = report::kJsonSchema;
  j["version"] = ATTN_DIAG_VERSION;
  j["command"] = "list";
  j["kernels"] = Json::array();
  for (const Entry& e : all) j["kernels"].push_back(entry_json(e));
  j["stages"] = Json::array();
  for (int i = 0; i < kNumStages; ++i) {
    Json stage;
    stage["name"] = name(static_cast<Stage>(i));
    stage["tensors"] = Json::array();
    for (const TensorInfo& t : kTensors)
      if (t.stage == static_cast<Stage>(i)) stage["tensors"].push_back(t.name);
    j["stages"].push_back(stage);
  }
  j["gates"] = kGateNames;
  j["inputs"] = Json::array();
  for (const InputKindInfo& kind : input_kinds()) j["inputs"].push_back(kind.name);
  j["backends"] = {{{"name", "host"}, {"can_run", true}, {"limits", host::limits_in_one_line()}},
                   {{"name", "cuda"},
                    {"can_run", gpu_state().usable()},
                    {"limits", cuda::limits_in_one_line()},
                    {"why_not", gpu_state().usable() ? Json(nullptr) : Json(gpu_state().why_not)}}};
  j["searched"] = kernel_directories();
  return report::dump_json(j);
}

std::string stages_text(const report::Style& style) {
  std::string s = "Stages and their tensors\n";
  report::Table table({"stage", "tensors"});
  for (int i = 0; i < kNumStages; ++i) {
    std::vector<std::string> tensors;
    for (const TensorInfo& t : kTensors)
      if (t.stage == static_cast<Stage>(i)) tensors.emplace_back(t.name);
    table.add({std::string(name(static_cast<Stage>(i))), report::join(tensors, ", ")});
  }
  s += table.text(style);
  std::vector<std::string> gates(kGateNames.begin(), kGateNames.end());
  return s + "\nGates (--stage)\n  " + report::join(gates, ", ") +
         "; full is the production kernel, without taps\n";
}

// A few to a line.
std::vector<std::string> in_lines(const std::vector<std::string>& words) {
  std::vector<std::string> lines;
  for (const std::string& word : words) {
    if (lines.empty() || lines.back().size() + word.size() > 64)
      lines.push_back(word);
    else
      lines.back() += "; " + word;
  }
  return lines;
}

std::string list_text(const std::vector<Entry>& all, const report::Style& style) {
  std::string s = "Kernels\n";
  report::Table kernels({"kernel", "backend", "state", "schedules", "tiles", "gates", "splits"});
  report::Table summaries({"kernel", "what it is, and what it cannot show"});
  std::set<std::string> described;
  for (const Entry& e : all) {
    const Colour colour = !e.why_not.empty()             ? Colour::kDim
                          : !e.usable || e.library.stale ? Colour::kRed
                                                         : Colour::kGreen;
    std::vector<std::string> gates = e.gates;
    if (gates.size() == kGateNames.size()) gates = {"all"};
    kernels.add({e.spec, e.library.backend, report::paint(style, colour, e.state),
                 !e.usable || e.library.backend == "cuda" ? ""
                 : e.lockstep                             ? "all"
                                                          : "no lockstep",
                 report::join(e.tiles, " "), report::join(gates, " "),
                 e.takes_num_splits ? "--num-splits" : ""});
    if (!e.library.fault.empty()) continue;          // as the kernel the fault is planted in
    if (!described.insert(e.spec).second) continue;  // by its build for another backend
    summaries.add({e.spec, e.summary});
    for (const std::string& line : in_lines(e.supports)) summaries.add({"", "declares: " + line});
    for (const std::string& exempt : e.exempt) summaries.add({"", "not judged: " + exempt});
  }
  s += all.empty() ? "  none found\n" : kernels.text(style) + '\n' + summaries.text(style);
  s += "\n" + stages_text(style);
  s += "\nInputs (--inputs)\n";
  for (const InputKindInfo& kind : input_kinds())
    s += "  " +
         report::wrap(fmt::format("{:<8} {}", kind.name, kind.summary), style.width - 2, 11) + '\n';
  s += "\nBackends\n  " +
       report::wrap(std::string("host  can run here. ") + host::limits_in_one_line(),
                    style.width - 2, 8) +
       "\n  " +
       report::wrap(gpu_state().usable()
                        ? "cuda  can run here, on " + attn_diag::text(gpu_state().gpus.front()) +
                              ". " + cuda::limits_in_one_line()
                        : "cuda  cannot run here: " + gpu_state().why_not,
                    style.width - 2, 8) +
       '\n';
  s += "\nSearched\n";
  for (const std::string& directory : kernel_directories()) s += "  " + directory + '\n';
  return s;
}

}  // namespace

CommandResult list_command(const Session& session) {
  std::vector<std::string> named = session.flags.files;
  if (!session.flags.kernel.empty()) named.push_back(session.flags.kernel);
  const std::vector<Entry> all = entries(named);
  CommandResult outcome;
  if (all.empty()) outcome.code = ExitCode::kCouldNotCompare;
  if (session.flags.json) {
    outcome.out = list_json(all);
  } else if (session.flags.quiet) {
    for (const Entry& e : all) outcome.out += e.spec + '\n';
  } else {
    outcome.out = list_text(all, session.style);
  }
  return outcome;
}

}  // namespace attn_diag::cli
