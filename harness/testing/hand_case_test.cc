// The host backend on the hand-computed cases.
#include <set>
#include <string>

#include "harness/testing/hand_case_check.h"

namespace attn_diag {

TEST_CASE("fa1 on backend host computes the hand-computed cases") {
  const std::set<std::string> run = testing::check_hand_cases("fa1", "host");
  for (const char* name :
       {"2x2_one_tile", "2x2_two_tiles", "2x2_causal_one_tile", "2x2_causal_two_tiles",
        "2x3_one_tile", "2x3_two_tiles", "2x3_causal_two_tiles", "3x3_one_tile",
        "3x3_causal_two_tiles", "3x3_window", "3x2_empty_row", "1x2_grouped_heads"}) {
    INFO(name);
    CHECK(run.count(name) == 1);
  }
}

TEST_CASE("split_k on backend host computes the hand-computed cases") {
  const std::set<std::string> run = testing::check_hand_cases("split_k", "host");
  for (const char* name : {"2x2_one_tile", "2x3_two_tiles", "3x3_two_splits",
                           "3x3_causal_two_splits", "1x2_grouped_heads"}) {
    INFO(name);
    CHECK(run.count(name) == 1);
  }
}

}  // namespace attn_diag
