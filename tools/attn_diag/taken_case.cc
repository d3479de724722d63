#include "tools/attn_diag/taken_case.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <vector>

#include "attn_diag/harness/error.h"
#include "harness/base/helper.h"
#include "harness/capture/capture_fields.h"
#include "harness/trace/schedule_check.h"

namespace attn_diag::cli {
namespace {

// What a run of it does: it is tried in a process of its own, and not for long.
constexpr double kMostMultiplyAdds = 1 << 28;
constexpr double kSeconds = 5;

struct Beside {
  std::string flags;
  RequestedCase one;
};

std::vector<Beside> cases_beside(const RequestedCase& refused) {
  std::vector<Beside> all;
  const auto add = [&](std::string flags, const auto& change) {
    Beside beside{std::move(flags), refused};
    change(beside.one.problem);
    beside.one.run.region = {};  // all of it
    all.push_back(std::move(beside));
  };
  const Problem& p = refused.problem;
  if (p.seqlen_q != 1) add("--seqlen-q 1", [](Problem& other) { other.seqlen_q = 1; });
  for (const int multiple : {16, 32, 64, 128}) {
    const auto up = [&](int n) { return (n + multiple - 1) / multiple * multiple; };
    if (up(p.seqlen_q) == p.seqlen_q && up(p.seqlen_k) == p.seqlen_k) continue;
    const int queries = up(p.seqlen_q), keys = up(p.seqlen_k);
    add(queries == keys ? fmt::format("--seqlen {}", keys)
                        : fmt::format("--seqlen-q {} --seqlen-k {}", queries, keys),
        [&](Problem& other) {
          other.seqlen_q = queries;
          other.seqlen_k = keys;
        });
  }
  if (p.batch != 1) add("--batch 1", [](Problem& other) { other.batch = 1; });
  if (p.kv_heads != p.heads)
    add(fmt::format("--kv-heads {}", p.heads),
        [](Problem& other) { other.kv_heads = other.heads; });
  const Layout layout = p.layout == Layout::kBHSD ? Layout::kBSHD : Layout::kBHSD;
  add(fmt::format("--layout {}", text(layout)), [&](Problem& other) { other.layout = layout; });
  return all;
}

bool takes(const Kernel& kernel, RequestedCase one) {
  try {
    const Geometry geometry = plan(kernel, one);
    run_kernel({kernel, one.problem, inputs_of(one, kernel, geometry), one.run});
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::string taken_beside(const Kernel& kernel, const RequestedCase& refused) {
  if (std::string_view(kernel.build().backend) != "host" || refused.inputs_from_file) return "";
  for (const Beside& beside : cases_beside(refused)) {
    if (multiply_adds(beside.one.problem) > kMostMultiplyAdds) continue;
    try {
      Helper helper({.processor_seconds = kSeconds, .seconds_per_answer = kSeconds},
                    [&](const Bytes&) { return Bytes(takes(kernel, beside.one) ? 1 : 0); });
      if (!helper.ask({}).empty())
        return fmt::format(" It takes the problem with {}.", beside.flags);
    } catch (const HelperLost&) {
      // Nothing is known of that case.
    }
  }
  return "";
}

}  // namespace attn_diag::cli
