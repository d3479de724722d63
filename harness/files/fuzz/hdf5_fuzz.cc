// Any bytes as an HDF5 file, a dump of ours or another's: read, or an Error, whatever happens to the helper.
#include "attn_diag/harness/dump.h"
#include "attn_diag/harness/files.h"
#include "harness/files/fuzz/arrays_fuzz.h"
#include "harness/testing/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace attn_diag;
  const testing::MemoryFile file(data, size);
  try {
    read_foreign({file.path()}, {});
  } catch (const Error&) {
  }
  try {
    read_dump(file.path());
  } catch (const Error&) {
  }
  return 0;
}
