#include "harness/files/fuzz/arrays_fuzz.h"
#include "harness/testing/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace attn_diag::files;
  const attn_diag::testing::MemoryFile file(data, size);
  read_all(
      [&](Contents& to) { read_npy(file.path(), "fuzz", bytes_of_file(file.path()), size, to); });
  return 0;
}
