// HDF5 files of any program: every dataset, in whatever group, and attributes of groups and datasets.
#include <fmt/format.h>

#include <bit>
#include <memory>

#include "attn_diag/harness/error.h"
#include "harness/dump/hdf5_document.h"
#include "harness/files/array.h"

namespace attn_diag::files {
namespace {

// A single value as text; none if it is no number, text or truth value.
std::optional<std::string> text_of(const Hdf5Attribute& a) {
  if (a.list) return std::nullopt;
  using Kind = Hdf5Attribute::Kind;
  if (a.kind == Kind::kText && a.texts.size() == 1) return a.texts.front();
  if (a.values.size() != 1) return std::nullopt;
  const std::uint64_t value = a.values.front();
  switch (a.kind) {
    case Kind::kSigned:
      return fmt::format("{}", static_cast<std::int64_t>(value));
    case Kind::kUnsigned:
      return fmt::format("{}", value);
    case Kind::kReal:
      return fmt::format("{}", std::bit_cast<double>(value));
    case Kind::kTruth:
      return value != 0 ? "true" : "false";
    case Kind::kText:
    case Kind::kOther:
      break;
  }
  return std::nullopt;
}

Array describe(const std::shared_ptr<const Hdf5Document>& document, const Hdf5Object& dataset) {
  Array array;
  array.file = document->file();
  array.name = dataset.path;
  array.shape = dataset.shape;
  array.dtype = dataset.dtype;
  array.type = dataset.type;
  array.opaque16 = array.type == "16-bit integer";
  array.unreadable = dataset.refused;
  const std::uint64_t cell = dataset.dtype ? size_of(*dataset.dtype) : 2;
  array.bytes = array.unreadable.empty() ? static_cast<std::uint64_t>(array.size()) * cell : 0;
  array.read = [document, &dataset, cell](std::uint64_t at, std::uint64_t n) {
    std::vector<std::byte> bytes(n);
    document->read(dataset, static_cast<std::int64_t>(at / cell),
                   static_cast<std::int64_t>(n / cell), bytes.data());
    return bytes;
  };
  return array;
}

}  // namespace

void read_hdf5(const std::string& path, Contents& to) {
  std::shared_ptr<const Hdf5Document> document;
  try {
    document = std::make_shared<const Hdf5Document>(path);
  } catch (const Error& e) {
    throw Error(fmt::format("{} cannot be read. {}", path, e.what()));
  }
  for (const Hdf5Object& object : document->objects()) {
    for (const auto& [name, attribute] : object.attributes)
      if (const auto text = text_of(attribute)) to.settings.emplace(name, *text);
    if (object.is_dataset) to.arrays.push_back(describe(document, object));
  }
}

}  // namespace attn_diag::files
