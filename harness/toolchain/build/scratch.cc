#include "harness/toolchain/build/scratch.h"

#include <cstdlib>
#include <fstream>
#include <string>

#include "attn_diag/harness/error.h"

namespace attn_diag::build {

namespace fs = std::filesystem;

ScratchFolder::ScratchFolder() {
  std::string name = (fs::temp_directory_path() / "attn-diag-build-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr)
    throw Error("No temporary folder could be made in " + fs::temp_directory_path().string() +
                ". Set TMPDIR to a folder that can be written to.");
  x_path = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(x_path, ignored);
}

void write_file(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) throw Error("'" + path.string() + "' cannot be written: is the disk full?");
}

}  // namespace attn_diag::build
