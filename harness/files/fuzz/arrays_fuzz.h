// What every reader of arrays has to hold for any bytes: arrays whose cells can be read, or an Error.
#pragma once

#include "attn_diag/harness/error.h"
#include "harness/files/array.h"

namespace attn_diag::files {

template <class Read>
void read_all(const Read& read) {
  Contents contents;
  try {
    read(contents);
  } catch (const Error&) {
  }
  for (const Array& array : contents.arrays) {
    try {
      array.text();
      const std::int64_t cells = array.size();
      if (!array.unreadable.empty() || cells > (1 << 24)) continue;
      const std::vector<std::byte> bytes = array.load();
      if (array.dtype && bytes.size() != static_cast<std::size_t>(cells) * size_of(*array.dtype))
        __builtin_trap();
    } catch (const Error&) {
    }
  }
}

}  // namespace attn_diag::files
