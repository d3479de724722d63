// Writing a case as safetensors (safetensors.cc has the format).
#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "attn_diag/harness/error.h"
#include "attn_diag/harness/files.h"
#include "harness/base/pending_file.h"
#include "harness/capture/capture_fields.h"

namespace attn_diag {
namespace {

using Shape = std::vector<std::int64_t>;

const char* safetensors_name(DType type) {
  switch (type) {
    case DType::kFp16:
      return "F16";
    case DType::kBf16:
      return "BF16";
    case DType::kFp32:
      return "F32";
    case DType::kFp64:
      break;
  }
  return "F64";
}

class Writer {
 public:
  void add(ForeignRole role, DType type, const Shape& shape, std::vector<std::byte> cells) {
    x_header[std::string(name(role))] = {{"dtype", safetensors_name(type)},
                                         {"shape", shape},
                                         {"data_offsets", {x_size, x_size + cells.size()}}};
    x_size += cells.size();
    x_cells.push_back(std::move(cells));
  }
  void say(const char* setting, const std::string& value) {
    x_header["__metadata__"][setting] = value;
  }

  void write(const std::string& path, bool force) const {
    PendingFile pending(path, force);
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
        std::fopen(pending.temporary_path().c_str(), "wbx"), std::fclose);
    std::string header = x_header.dump();
    header.resize((header.size() + 7) / 8 * 8, ' ');  // cells begin at a multiple of 8 bytes
    const std::uint64_t length = header.size();
    bool good = file != nullptr && put(file.get(), &length, sizeof length) &&
                put(file.get(), header.data(), header.size());
    for (const std::vector<std::byte>& cells : x_cells)
      good = good && put(file.get(), cells.data(), cells.size());
    if (!good || std::fflush(file.get()) != 0)
      throw Error(fmt::format("{} could not be written: {}.", path, std::strerror(errno)));
    pending.commit();
  }

 private:
  static bool put(std::FILE* file, const void* data, std::size_t size) {
    return size == 0 || std::fwrite(data, 1, size, file) == size;
  }

  nlohmann::json x_header;
  std::vector<std::vector<std::byte>> x_cells;
  std::uint64_t x_size = 0;
};

// o as q lies in memory.
std::vector<std::byte> in_layout(const TensorData& o, const Problem& p) {
  std::vector<std::byte> out(o.bytes.size());
  const Strides to = dense_strides(p.layout, p.heads, p.seqlen_q, p.head_dim_v);
  const std::size_t element = size_of(o.dtype);
  const std::size_t row = static_cast<std::size_t>(p.head_dim_v) * element;
  const std::byte* from = o.bytes.data();
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t h = 0; h < p.heads; ++h)
      for (std::int64_t s = 0; s < p.seqlen_q; ++s, from += row)
        std::memcpy(out.data() +
                        static_cast<std::size_t>(b * to.batch + h * to.head + s * to.seq) * element,
                    from, row);
  return out;
}

}  // namespace

void write_foreign(const std::string& path, const ForeignCase& from, bool force) {
  const Capture& c = from.capture;
  const Problem& p = c.problem;
  const auto shape = [&](std::int64_t heads, std::int64_t length, std::int64_t dims) {
    return p.layout == Layout::kBHSD ? Shape{p.batch, heads, length, dims}
                                     : Shape{p.batch, length, heads, dims};
  };
  Writer to;
  to.add(ForeignRole::kQ, p.dtype, shape(p.heads, p.seqlen_q, p.head_dim), c.q);
  to.add(ForeignRole::kK, p.dtype, shape(p.kv_heads, p.seqlen_k, p.head_dim), c.k);
  to.add(ForeignRole::kV, p.dtype, shape(p.kv_heads, p.seqlen_k, p.head_dim_v), c.v);
  if (!c.has(Tensor::kO)) throw Error("A case without o cannot be written for other programs.");
  to.add(ForeignRole::kO, c[Tensor::kO].dtype, shape(p.heads, p.seqlen_q, p.head_dim_v),
         in_layout(c[Tensor::kO], p));
  if (c.has(Tensor::kLse))
    to.add(ForeignRole::kLse, c[Tensor::kLse].dtype, {p.batch, p.heads, p.seqlen_q},
           c[Tensor::kLse].bytes);
  if (const std::vector<float>& bias = from.extras.bias; !bias.empty()) {
    std::vector<std::byte> cells(bias.size() * sizeof(float));
    std::memcpy(cells.data(), bias.data(), cells.size());
    to.add(ForeignRole::kBias, DType::kFp32,
           {from.extras.bias_batch, from.extras.bias_heads, p.seqlen_q, p.seqlen_k},
           std::move(cells));
  }
  to.say("layout", text(p.layout));
  to.say("softmax_scale", fmt::format("{}", p.softmax_scale));
  to.say("mask", text(p.mask));
  if (!from.kv_lens.empty()) to.say("kv_lens", fmt::format("{}", fmt::join(from.kv_lens, ",")));
  if (from.extras.softcap != 0) to.say("softcap", fmt::format("{}", from.extras.softcap));
  to.write(path, force);
}

}  // namespace attn_diag
