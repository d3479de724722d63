// .npz: a zip archive of .npy files, stored or deflated. minizip reads it and checks its sums.
#include <fmt/format.h>
#include <unzip.h>

#include <algorithm>
#include <array>
#include <memory>

#include "attn_diag/harness/error.h"
#include "harness/files/array.h"

namespace attn_diag::files {
namespace {

struct Close {
  void operator()(void* archive) const { unzClose(archive); }
};
using Archive = std::unique_ptr<void, Close>;

Archive open(const std::string& path) {
  Archive archive(unzOpen64(path.c_str()));
  if (!archive)
    throw Error(
        fmt::format("{} is not a whole .npz file: it has no directory of a zip archive at its end. "
                    "Copy or write it "
                    "again.",
                    path));
  return archive;
}

Error damaged(const std::string& path, const std::string& member) {
  return Error(fmt::format("{} is damaged: {} in it cannot be unpacked. Copy or write it again.",
                           path, member));
}

// A member from its beginning; all of it is unpacked where its end is asked for, so that its sum is
// checked.
std::vector<std::byte> unpack(const std::string& path, const std::string& member,
                              std::uint64_t offset, std::uint64_t size) {
  const Archive archive = open(path);
  constexpr int kCaseSensitive = 1;
  if (unzLocateFile(archive.get(), member.c_str(), kCaseSensitive) != UNZ_OK ||
      unzOpenCurrentFile(archive.get()) != UNZ_OK)
    throw damaged(path, member);
  std::vector<std::byte> out(size);
  std::array<std::byte, 1 << 16> skipped;
  const auto take = [&](std::byte* to, std::uint64_t most) {
    const auto piece = static_cast<unsigned>(std::min<std::uint64_t>(most, 1 << 30));
    const int n = unzReadCurrentFile(archive.get(), to, piece);
    if (n <= 0) throw damaged(path, member);
    return static_cast<std::uint64_t>(n);
  };
  for (std::uint64_t done = 0; done < offset;)
    done += take(skipped.data(), std::min<std::uint64_t>(offset - done, skipped.size()));
  for (std::uint64_t done = 0; done < size;) done += take(out.data() + done, size - done);
  if (unzCloseCurrentFile(archive.get()) == UNZ_CRCERROR) throw damaged(path, member);
  return out;
}

}  // namespace

void read_npz(const std::string& path, Contents& to) {
  const Archive archive = open(path);
  bool pickled = false;
  for (int next = unzGoToFirstFile(archive.get()); next == UNZ_OK;
       next = unzGoToNextFile(archive.get())) {
    unz_file_info64 info;
    std::array<char, 4096> name{};
    if (unzGetCurrentFileInfo64(archive.get(), &info, name.data(), name.size() - 1, nullptr, 0,
                                nullptr, 0) != UNZ_OK)
      throw damaged(path, "its directory");
    const std::string member = name.data();
    pickled = pickled || member.ends_with(".pkl");
    if (!member.ends_with(".npy")) continue;
    const ReadBytes read = [path, member](std::uint64_t offset, std::uint64_t size) {
      return unpack(path, member, offset, size);
    };
    read_npy(path, member.substr(0, member.size() - 4), read, info.uncompressed_size, to);
  }
  if (pickled)
    throw Error(fmt::format(
        "{} was written by torch.save, which stores Python objects. Save the tensors with "
        "safetensors.torch.save_file, or as numpy arrays.",
        path));
}

}  // namespace attn_diag::files
