// A line of a source of the user's.
#pragma once

#include <string>

namespace attn_diag::repair {

struct SourcePlace {
  std::string file;  // its path, or as much of its end as tells it apart
  int line = 0;

  bool operator==(const SourcePlace&) const = default;
};

}  // namespace attn_diag::repair
