// Any text as the source of a kernel: an adapter is drafted, or it is said why not.
#include <cstddef>
#include <cstdint>

#include "attn_diag/harness/error.h"
#include "harness/testing/fuzz/memory_file.h"
#include "harness/toolchain/adapt/adapt.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const attn_diag::testing::MemoryFile file(data, size);
  try {
    attn_diag::adapt::draft_adapter({file.path(), "", "/tmp", std::nullopt});
  } catch (const attn_diag::Error&) {
  }
  return 0;
}
