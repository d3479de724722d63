// A temporary folder, removed with what is in it.
#pragma once

#include <filesystem>

namespace attn_diag::build {

class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  std::filesystem::path operator/(const std::filesystem::path& name) const { return x_path / name; }

 private:
  std::filesystem::path x_path;
};

void write_file(const std::filesystem::path& path, const std::string& text);

}  // namespace attn_diag::build
