#include "tools/gpu_check/fidelity.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/report/json.h"

namespace attn_diag::gpu_check {

using report::Json;

BackendVerdict read_run(int exit_code, bool timed_out, const std::string& out,
                        const std::string& err) {
  using Kind = BackendVerdict::Kind;
  BackendVerdict verdict;
  if (timed_out) {
    verdict.kind = Kind::kHangs;
    return verdict;
  }
  const Json json = Json::parse(out, nullptr, false);
  if (exit_code == 0) {
    verdict.kind = Kind::kAgrees;
    return verdict;
  }
  if (exit_code != 1 || json.is_discarded()) {
    verdict.message = err.substr(0, err.find('\n'));
    return verdict;
  }
  verdict.kind = Kind::kDiverges;
  for (const Json& stage : json.value("stages", Json::array()))
    for (const Json& tensor : stage.value("tensors", Json::array()))
      if (tensor.value("verdict", "") == "diverges")
        verdict.tensors.push_back(tensor.value("name", "?"));
  std::sort(verdict.tensors.begin(), verdict.tensors.end());
  return verdict;
}

std::string in_words(const BackendVerdict& verdict) {
  switch (verdict.kind) {
    case BackendVerdict::Kind::kAgrees:
      return "agrees";
    case BackendVerdict::Kind::kDiverges:
      return verdict.tensors.empty()
                 ? "diverges"
                 : fmt::format("diverges in {}", fmt::join(verdict.tensors, ", "));
    case BackendVerdict::Kind::kHangs:
      return "does not end";
    case BackendVerdict::Kind::kDidNotComplete:
      break;
  }
  return verdict.message.empty() ? "does not complete" : "does not complete: " + verdict.message;
}

bool same_verdict(const BackendVerdict& host, const BackendVerdict& gpu) {
  using Kind = BackendVerdict::Kind;
  // A hang ends on the host as a finding, on a GPU by the clock.
  const auto ends = [](const BackendVerdict& v) {
    return v.kind != Kind::kDidNotComplete && v.kind != Kind::kHangs;
  };
  if (!ends(host) || !ends(gpu)) return ends(host) == ends(gpu);
  return host.kind == gpu.kind && host.tensors == gpu.tensors;
}

bool as_expected(const BackendVerdict& host, const BackendVerdict& gpu, bool broken) {
  using Kind = BackendVerdict::Kind;
  return broken ? same_verdict(host, gpu) : host.kind == Kind::kAgrees && gpu.kind == Kind::kAgrees;
}

std::string reason_of(int exit_code, const std::string& out) {
  const Json json = Json::parse(out, nullptr, false);
  if (exit_code != 1 || json.is_discarded()) return "";
  for (const Json& finding : json.value("findings", Json::array())) {
    const std::string severity = finding.value("severity", "");
    if (severity == "benign") continue;
    return fmt::format("check: {} {}: {}", severity, finding.value("kind", "?"),
                       finding.value("message", ""));
  }
  return "";
}

}  // namespace attn_diag::gpu_check
