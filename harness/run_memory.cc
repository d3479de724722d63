#include "harness/run_memory.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "attn_diag/harness/host/check.h"

namespace attn_diag {
namespace {

// Signalling NaNs: arithmetic and conversions only ever produce quiet ones, so a cell that still
// holds its poison was not written.
std::uint32_t poison_of(DType dtype) {
  return dtype == DType::kFp16 ? 0x7DA5u : dtype == DType::kBf16 ? 0x7FA5u : 0x7FA5A5A5u;
}

void poison(void* data, DType dtype, std::int64_t elements) {
  const std::uint32_t bits = poison_of(dtype);
  const std::size_t size = size_of(dtype);
  auto* bytes = static_cast<std::byte*>(data);
  for (std::int64_t i = 0; i < elements; ++i)
    std::memcpy(bytes + static_cast<std::size_t>(i) * size, &bits, size);  // little endian
}

}  // namespace

bool is_poison(const std::byte* element, DType dtype) {
  const std::uint32_t bits = poison_of(dtype);
  return std::memcmp(element, &bits, size_of(dtype)) == 0;
}

std::int64_t rows_of(const Problem& p) {
  return static_cast<std::int64_t>(p.batch) * p.heads * p.seqlen_q;
}

std::size_t guard_bytes(const Problem& p, const Geometry& g) {
  const std::int64_t row = std::int64_t{p.heads} * std::max(p.head_dim, p.head_dim_v);
  const std::int64_t bytes =
      row * std::max(g.tile.block_m, g.tile.block_n) * static_cast<std::int64_t>(size_of(p.dtype));
  return static_cast<std::size_t>(std::clamp<std::int64_t>(bytes, 4096, 1 << 20));
}

RunMemory::RunMemory(const Problem& p, const Geometry& g, const InputData& inputs,
                     std::size_t workspace_bytes, const MemoryFill& fill)
    : q(inputs.q.size(), guard_bytes(p, g), fill[GivenMemory::kAroundQ], MemoryFill::kNaN, "q"),
      k(inputs.k.size(), guard_bytes(p, g), fill[GivenMemory::kAroundK], MemoryFill::kNaN, "k"),
      v(inputs.v.size(), guard_bytes(p, g), fill[GivenMemory::kAroundV], MemoryFill::kNaN, "v"),
      o(static_cast<std::size_t>(rows_of(p) * p.head_dim_v) * size_of(p.dtype), guard_bytes(p, g),
        fill[GivenMemory::kAroundOutput], fill[GivenMemory::kOutput], "o"),
      lse(static_cast<std::size_t>(rows_of(p)) * sizeof(float), guard_bytes(p, g),
          fill[GivenMemory::kAroundOutput], fill[GivenMemory::kOutput], "lse"),
      workspace(workspace_bytes, guard_bytes(p, g), fill[GivenMemory::kAroundWorkspace],
                fill[GivenMemory::kWorkspace], "the workspace") {
  std::memcpy(q.data(), inputs.q.data(), inputs.q.size());
  std::memcpy(k.data(), inputs.k.data(), inputs.k.size());
  std::memcpy(v.data(), inputs.v.data(), inputs.v.size());
  if (fill[GivenMemory::kOutput] != MemoryFill::kNaN) return;
  poison(o.data(), p.dtype, rows_of(p) * p.head_dim_v);
  poison(lse.data(), DType::kFp32, rows_of(p));
}

void RunMemory::place(RunDevice& device, RunRequest& request, std::size_t guard) {
  const auto put = [&](const char* what, GuardedBuffer& buffer, bool written) {
    return device.place(what, buffer.data(), buffer.size(), guard, written, buffer.around());
  };
  request.q = put("q", q, false);
  request.k = put("k", k, false);
  request.v = put("v", v, false);
  request.o = put("o", o, true);
  request.lse = static_cast<float*>(put("lse", lse, true));
  request.workspace = put("the workspace", workspace, false);
}

void RunMemory::place_for_check(RunRequest& request) {
  const auto put = [](GuardedBuffer& buffer, const char* name, bool initialised) {
    host::register_memory(buffer.data(), buffer.size(), name, initialised);
    return static_cast<void*>(buffer.size() == 0 ? nullptr : buffer.data());
  };
  request.q = put(q, "q", true);
  request.k = put(k, "k", true);
  request.v = put(v, "v", true);
  request.o = put(o, "o", false);
  request.lse = static_cast<float*>(put(lse, "lse", false));
  request.workspace = put(workspace, "workspace", false);
}

void RunMemory::check_guards(const Kernel& kernel) const {
  const std::array<std::pair<const char*, const GuardedBuffer*>, 6> buffers = {
      {{"q", &q}, {"k", &k}, {"v", &v}, {"o", &o}, {"lse", &lse}, {"the workspace", &workspace}}};
  for (const auto& [what, buffer] : buffers)
    if (const auto offset = buffer->first_write_outside())
      throw_wrote_outside(kernel, what, *offset, buffer->size());
}

void take_output(TensorData& data, const GuardedBuffer& buffer, const Capture& capture) {
  const Problem& p = capture.problem;
  const bool is_o = data.id == Tensor::kO;
  const std::int64_t width = is_o ? p.head_dim_v : 1;
  const Strides strides =
      dense_strides(is_o ? p.layout : Layout::kBHSD, p.heads, p.seqlen_q, width);
  const std::size_t size = size_of(data.dtype);
  const Region& r = capture.region;
  data.bytes.resize(static_cast<std::size_t>(data.size()) * size);
  std::size_t cell = 0;
  for (std::int64_t b = r.origin[0]; b < r.origin[0] + r.extent[0]; ++b) {
    for (std::int64_t h = r.origin[1]; h < r.origin[1] + r.extent[1]; ++h) {
      for (std::int64_t q = r.origin[2]; q < r.origin[2] + r.extent[2]; ++q) {
        const std::byte* row =
            buffer.data() +
            static_cast<std::size_t>(b * strides.batch + h * strides.head + q * strides.seq) * size;
        std::memcpy(data.bytes.data() + cell * size, row, static_cast<std::size_t>(width) * size);
        for (std::int64_t d = 0; d < width; ++d, ++cell) {
          data.writes[cell] = is_poison(row + static_cast<std::size_t>(d) * size, data.dtype)
                                  ? std::uint8_t{0}
                                  : std::max<std::uint8_t>(data.writes[cell], 1);
        }
      }
    }
  }
}

}  // namespace attn_diag
