// F7 to F10, F12: which keys count.
#include "reference/counterfactual/entry.h"

namespace attn_diag::reference {
namespace {

Deviation shifted(std::int32_t first, std::int32_t last) {
  Deviation d;
  d.mask.first_shift = first;
  d.mask.last_shift = last;
  return d;
}

const Entry kEntries[] = {
    {{.id = "mask-shift",
      .statement = "an end of the visible keys is off by delta",
      .formula = "F7",
      .family = Family::kMask,
      .stage = Stage::kQk,
      .parameters = {"first", "delta"},
      .citation = "flash-attention#282, transformers#39408",
      .remedy = "the comparison of key and query index: < or <=, and which ends are lined up"},
     [](const Case& c, Variants& out) {
       if (c.problem().mask.kind == MaskKind::kNone) return;
       for (const std::int32_t by : {-2, -1, 1, 2})
         out.add(shifted(0, by), {{"delta", static_cast<double>(by), ""}});
       if (c.problem().mask.kind != MaskKind::kWindow) return;
       for (const std::int32_t by : {-1, 1})
         out.add(shifted(by, 0), {{"first", static_cast<double>(by), ""}});
     }},
};

}  // namespace

std::span<const Entry> mask_entries() { return kEntries; }

}  // namespace attn_diag::reference
