// The lines that the checker names: of races, of memory that nobody wrote, of what is out of bounds.
#pragma once

#include "attn_diag/harness/host/check.h"
#include "harness/lines/suspects.h"

namespace attn_diag::lines {

class FindingSuspects : public Suspects {
 public:
  using Suspects::Suspects;

  // Of errors alone. Says whether there are any with a line; `what` is then the first of them.
  bool suspect(const host::CheckReport& report);

 private:
  void suspect_access(const host::CheckAccess& access, const std::string& array,
                      const std::string& why);
  // What that line depends on.
  void suspect_site(const host::CheckAccess& access, bool indices_first);
};

}  // namespace attn_diag::lines
