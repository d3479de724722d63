// In place of a fuzzer's main(): every file of the folders and every file that is named.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;

int give(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (!file) {
    std::fprintf(stderr, "%s cannot be read\n", path.c_str());
    return 0;
  }
  std::fprintf(stderr, "%s\n", path.c_str());  // the last one is the one that crashed
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  int given = 0;
  for (int i = 1; i < argc; ++i) {
    const fs::path path = argv[i];
    if (fs::is_regular_file(path)) given += give(path);
    if (!fs::is_directory(path)) continue;
    for (const fs::directory_entry& entry : fs::directory_iterator(path))
      given += give(entry.path());
  }
  std::printf("%d files were given\n", given);
  return given > 0 ? 0 : 1;  // an empty corpus tests nothing
}
