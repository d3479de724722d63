#include "harness/files/fuzz/arrays_fuzz.h"
#include "harness/testing/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const attn_diag::testing::MemoryFile file(data, size);
  attn_diag::files::read_all(
      [&](attn_diag::files::Contents& to) { attn_diag::files::read_npz(file.path(), to); });
  return 0;
}
