// .npz: a zip archive of .npy files, stored or deflated. minizip reads it and checks its sums.
#include <fmt/format.h>
#include <unzip.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "attn_diag/harness/error.h"
#include "harness/files/array.h"

namespace attn_diag::files {
namespace {

Error damaged(const std::string& path, const std::string& member) {
  return Error(fmt::format("{} is damaged: {} in it cannot be unpacked. Copy or write it again.",
                           path, member));
}

struct Member {
  std::string name;
  std::uint64_t size = 0;  // unpacked
  unz64_file_pos at{};
};

// Each member is found by its place, and goes on being unpacked where it was left.
class Zip {
 public:
  explicit Zip(const std::string& path) : x_path(path), x_archive(unzOpen64(path.c_str())) {
    if (x_archive == nullptr)
      throw Error(
          fmt::format("{} is not a whole .npz file: it has no directory of a zip archive at its "
                      "end. Copy or write "
                      "it again.",
                      path));
    for (int next = unzGoToFirstFile(x_archive.get()); next == UNZ_OK;
         next = unzGoToNextFile(x_archive.get()))
      note_member();
  }

  const std::vector<Member>& members() const { return x_members; }

  // Where its end is reached, its sum is checked.
  std::vector<std::byte> read(const Member& member, std::uint64_t offset, std::uint64_t size) {
    if (x_open != &member || x_position > offset) open(member);
    std::array<std::byte, 1 << 16> skipped;
    while (x_position < offset)
      take(member, skipped.data(), std::min<std::uint64_t>(offset - x_position, skipped.size()));
    std::vector<std::byte> out(size);
    for (std::uint64_t done = 0; done < size;) done += take(member, out.data() + done, size - done);
    if (x_position >= member.size && !close()) throw damaged(x_path, member.name);
    return out;
  }

 private:
  void note_member() {
    constexpr std::size_t kMost = 1'000'000;
    unz_file_info64 info;
    std::array<char, 4096> name{};
    Member member;
    if (unzGetCurrentFileInfo64(x_archive.get(), &info, name.data(), name.size() - 1, nullptr, 0,
                                nullptr, 0) != UNZ_OK ||
        unzGetFilePos64(x_archive.get(), &member.at) != UNZ_OK || x_members.size() >= kMost)
      throw damaged(x_path, "its directory");
    member.name = name.data();
    member.size = info.uncompressed_size;
    // A deflated byte holds no more than this.
    constexpr std::uint64_t kMostUnpacked = 1100;
    if (member.size / kMostUnpacked > info.compressed_size) throw damaged(x_path, member.name);
    x_members.push_back(std::move(member));
  }

  void open(const Member& member) {
    close();
    unz64_file_pos at = member.at;
    if (unzGoToFilePos64(x_archive.get(), &at) != UNZ_OK ||
        unzOpenCurrentFile(x_archive.get()) != UNZ_OK)
      throw damaged(x_path, member.name);
    x_open = &member;
    x_position = 0;
  }

  bool close() {
    return std::exchange(x_open, nullptr) == nullptr ||
           unzCloseCurrentFile(x_archive.get()) != UNZ_CRCERROR;
  }

  std::uint64_t take(const Member& member, std::byte* to, std::uint64_t most) {
    const auto piece = static_cast<unsigned>(std::min<std::uint64_t>(most, 1 << 30));
    const int n = unzReadCurrentFile(x_archive.get(), to, piece);
    if (n <= 0) throw damaged(x_path, member.name);
    x_position += static_cast<std::uint64_t>(n);
    return static_cast<std::uint64_t>(n);
  }

  struct Close {
    void operator()(void* archive) const { unzClose(archive); }
  };
  std::string x_path;
  std::unique_ptr<void, Close> x_archive;
  std::vector<Member> x_members;
  const Member* x_open = nullptr;
  std::uint64_t x_position = 0;  // in it
};

}  // namespace

void read_npz(const std::string& path, Contents& to) {
  const auto zip = std::make_shared<Zip>(path);
  bool pickled = false;
  for (const Member& member : zip->members()) {
    pickled = pickled || member.name.ends_with(".pkl");
    if (!member.name.ends_with(".npy")) continue;
    const ReadBytes read = [zip, &member](std::uint64_t offset, std::uint64_t size) {
      return zip->read(member, offset, size);
    };
    const std::size_t before = to.arrays.size();
    read_npy(path, member.name.substr(0, member.name.size() - 4), read, member.size, to);
    for (std::size_t i = before; i < to.arrays.size(); ++i) to.arrays[i].offset.reset();
  }
  if (pickled)
    throw Error(fmt::format(
        "{} was written by torch.save, which stores Python objects. Save the tensors with "
        "safetensors.torch.save_file, or as numpy arrays.",
        path));
}

}  // namespace attn_diag::files
