// What inputs hide, by the catalogue.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>

#include "attn_diag/harness/identifiability.h"
#include "attn_diag/harness/run.h"
#include "harness/testing/catch_for_tests.h"

namespace attn_diag {
namespace {

using Names = std::set<std::string>;

Problem problem_of(DType dtype, MaskKind mask) {
  Problem p;
  p.batch = 2;
  p.heads = 4;
  p.kv_heads = 2;
  p.seqlen_q = 75;
  p.seqlen_k = 100;
  p.head_dim = p.head_dim_v = 64;
  p.dtype = dtype;
  p.mask.kind = mask;
  p.mask.alignment = CausalAlignment::kBottomRight;
  p.softmax_scale = 0.125f;
  return p;
}

Identifiability of(const Problem& p, const std::string& kind, int threads = 0) {
  const InputData inputs = make_inputs(p, kind, 0, 1.0);
  Geometry g;
  g.tile = {32, 32};
  g.num_splits = 2;
  g.tiles_per_split = 2;
  g.has_split_merge = true;
  Arithmetic a;
  a.output = p.dtype;
  return identify(
      reference::PredictionInputs(p, g, a, {inputs.q.data(), inputs.k.data(), inputs.v.data()}),
      threads);
}

Names hidden(const Identifiability& found) {
  Names names;
  for (const Identifiability::Bug& bug : found.bugs)
    if (bug.is_hidden()) names.insert(bug.id);
  return names;
}

const Identifiability::Bug& bug(const Identifiability& found, const std::string& id) {
  for (const Identifiability::Bug& b : found.bugs)
    if (b.id == id) return b;
  FAIL("no bug " << id);
  return found.bugs.front();
}

}  // namespace

TEST_CASE("probe hides no bug but those that no inputs show in o and lse") {
  for (const DType dtype : {DType::kFp16, DType::kBf16, DType::kFp32}) {
    INFO("dtype " << static_cast<int>(dtype));
    // A max that is another one, as long as all use it, and keys behind the end that the mask covers, change
    // neither o nor lse; nor does 1 / l in a type that is no coarser than that of o.
    Names expected{"max-floor", "max-narrow", "max-of-other-tile"};
    if (dtype == DType::kBf16) expected.insert("inverse-narrow");
    CHECK(hidden(of(problem_of(dtype, MaskKind::kNone), "probe")) == expected);
    expected.insert("padding-counted");
    CHECK(hidden(of(problem_of(dtype, MaskKind::kCausal), "probe")) == expected);
  }
}

TEST_CASE("ones hide bugs of many kinds, and each way of a bug is counted") {
  const Problem p = problem_of(DType::kFp16, MaskKind::kNone);
  const Identifiability ones = of(p, "ones"), probe = of(p, "probe");
  CHECK(ones.bugs.size() == probe.bugs.size());
  CHECK(ones.bugs.size() > 50);
  CHECK(ones.hidden() > 15);
  for (const char* id : {"alpha-missing-o", "stale-tile", "batch-zero", "query-head"}) {
    INFO(id);
    CHECK(bug(ones, id).hidden > 0);
    CHECK(bug(ones, id).hidden == static_cast<std::int64_t>(bug(ones, id).hidden_ways.size()));
    CHECK(bug(ones, id).hidden <= bug(ones, id).ways);
    CHECK(bug(probe, id).hidden == 0);
    CHECK(bug(probe, id).shows_by > 1.0);
  }
  CHECK(hidden(ones).count("alpha-missing-o") == 1);
  CHECK(hidden(ones).count("gain") == 0);
}

TEST_CASE("what no result tells apart is said of both, and does not depend on threads") {
  const Problem p = problem_of(DType::kFp16, MaskKind::kNone);
  const Identifiability one = of(p, "probe", 1), two = of(p, "probe", 2);
  REQUIRE(one.bugs.size() == two.bugs.size());
  bool any = false;
  for (std::size_t i = 0; i < one.bugs.size(); ++i) {
    CHECK(one.bugs[i].alike == two.bugs[i].alike);
    CHECK(one.bugs[i].shows_by == two.bugs[i].shows_by);
    for (const std::string& other : one.bugs[i].alike) {
      const auto& back = bug(one, other).alike;
      CHECK(std::find(back.begin(), back.end(), one.bugs[i].id) != back.end());
      any = true;
    }
  }
  CHECK(any);
  const auto& gain = bug(one, "gain").alike;
  CHECK(std::find(gain.begin(), gain.end(), "alpha-missing-o") == gain.end());
}

}  // namespace attn_diag
