// The C++ file that defines attn_diag_build_info(): what a kernel library was made from.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace attn_diag::build {

struct BuildInfoRequest {
  std::filesystem::path root;     // files below it are shown relative to it
  std::filesystem::path folder;   // where the compiler ran; empty: here
  std::filesystem::path exclude;  // files below it are left out, as the compiler's own are
  std::string compiler, flags, backend, architectures, fault;
  bool lockstep = false;
  std::vector<std::filesystem::path>
      header_lists;  // of included files as a compiler writes them (-MMD)
};

struct BuildInfoText {
  std::string code;
  std::vector<std::string> files;  // absolute, each once
};

// Throws std::runtime_error for what cannot be read. Hashes are XXH3 64-bit of the files' bytes.
BuildInfoText build_info(const BuildInfoRequest& request);

// "0x0123456789abcdef": XXH3, 64 bits.
std::string hash_of(std::string_view bytes);
// Of a file's bytes. Throws as above.
std::string hash_of_file(const std::filesystem::path& file);

// The included files, absolute, that a list of -MMD names. `folder`: where the compiler ran.
std::vector<std::filesystem::path> included_files(const std::filesystem::path& list,
                                                  const std::filesystem::path& folder);

// A path as a make rule has it.
std::string escape_for_make(const std::string& path);

}  // namespace attn_diag::build
