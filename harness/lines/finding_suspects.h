// The lines that the checker names: of races, of memory that nobody wrote, of what is out of bounds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attn_diag/harness/host/check.h"
#include "harness/lines/number_suspects.h"

namespace attn_diag::lines {

class FindingSuspects : public NumberSuspects {
 public:
  FindingSuspects(const Terms& terms, const std::vector<OutputElement>& elements,
                  LineDivergence& out)
      : NumberSuspects(terms, out) {
    note_heads(elements);
  }

  // Of errors alone. Says whether there are any with a line; `what` is then the first of them.
  bool suspect(const host::CheckReport& report);

 private:
  void suspect_access(const host::CheckAccess& access, const std::string& array,
                      const std::string& why);
  std::vector<std::uint32_t> sites_of(const host::CheckAccess& access) const;
  // What was made elsewhere of an access whose own line computes nothing.
  void suspect_makers(const host::CheckAccess& access, const std::string& array);
  // What that line depends on.
  void suspect_site(const host::CheckAccess& access, bool indices_first);
  // Of what nobody wrote: who should have.
  void suspect_stores(const std::string& array);
};

}  // namespace attn_diag::lines
