#include "harness/run/run_memory.h"

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

void poison(GuardedBuffer& buffer, DType dtype) {
  const std::uint32_t bits = poison_of(dtype);
  const std::size_t size = size_of(dtype);
  for (std::size_t at = 0; at < buffer.size(); at += size)
    std::memcpy(buffer.data() + at, &bits, size);  // little endian
}

bool is_given(Part part) {
  return part == Part::kFromScores || part == Part::kFromRawScores || part == Part::kFromProbs;
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

std::int64_t between_cells(const Problem& p) { return rows_of(p) * p.seqlen_k; }

std::vector<float> dense_reference(const Problem& p, const Geometry& geometry,
                                   const Arithmetic& arithmetic, const reference::Inputs& inputs,
                                   Tensor tensor, int threads) {
  std::vector<float> values(static_cast<std::size_t>(between_cells(p)));
  const auto t = static_cast<std::size_t>(tensor);
  reference::Options options;
  options.tensors = tensor_bit(tensor);
  options.bounds = false;
  options.threads = threads;
  reference::for_each_row_block(
      p, geometry, arithmetic, inputs, options, [&](const reference::RowBlock& block) {
        const std::int64_t row =
            (std::int64_t{block.batch} * p.heads + block.head) * p.seqlen_q + block.query_begin;
        for (std::int64_t i = 0; i < std::int64_t{block.rows} * p.seqlen_k; ++i)
          values[static_cast<std::size_t>(row * p.seqlen_k + i)] =
              static_cast<float>(block.value[t][i]);
      });
  return values;
}

Between make_between(const Problem& p, const Geometry& geometry, const Arithmetic& arithmetic,
                     const reference::Inputs& inputs, int threads) {
  Between out;
  out.part = arithmetic.part;
  if (out.part == Part::kAttention) return out;
  out.type = out.part == Part::kFromProbs ? arithmetic.probs : arithmetic.scores;
  if (!is_given(out.part)) return out;
  Problem given = p;
  if (out.part == Part::kFromRawScores) {  // q.k of all keys
    given.softmax_scale = 1;
    given.mask = {};
  }
  const Tensor t = out.part == Part::kFromProbs ? Tensor::kP : Tensor::kS;
  const std::vector<float> values =
      dense_reference(given, geometry, arithmetic, inputs, t, threads);
  out.given.resize(values.size() * size_of(out.type));
  for (std::size_t i = 0; i < values.size(); ++i)
    store_element(out.given.data(), out.type, static_cast<std::int64_t>(i), values[i]);
  return out;
}

RunMemory::RunMemory(const Problem& p, const Geometry& g, const InputData& inputs,
                     std::size_t workspace_bytes, const MemoryFill& fill, const Between& given)
    : q(inputs.q.size(), guard_bytes(p, g), fill[GivenMemory::kAroundQ], MemoryFill::kNaN, "q"),
      k(inputs.k.size(), guard_bytes(p, g), fill[GivenMemory::kAroundK], MemoryFill::kNaN, "k"),
      v(inputs.v.size(), guard_bytes(p, g), fill[GivenMemory::kAroundV], MemoryFill::kNaN, "v"),
      o(given.part == Part::kScores
            ? 0
            : static_cast<std::size_t>(rows_of(p) * p.head_dim_v) * size_of(p.dtype),
        guard_bytes(p, g), fill[GivenMemory::kAroundOutput], fill[GivenMemory::kOutput], "o"),
      lse(given.part == Part::kScores ? 0 : static_cast<std::size_t>(rows_of(p)) * sizeof(float),
          guard_bytes(p, g), fill[GivenMemory::kAroundOutput], fill[GivenMemory::kOutput], "lse"),
      workspace(workspace_bytes, guard_bytes(p, g), fill[GivenMemory::kAroundWorkspace],
                fill[GivenMemory::kWorkspace], "the workspace"),
      between(given.part == Part::kAttention
                  ? 0
                  : static_cast<std::size_t>(between_cells(p)) * size_of(given.type),
              guard_bytes(p, g),
              fill[given.part == Part::kScores ? GivenMemory::kAroundOutput
                                               : GivenMemory::kAroundGiven],
              fill[GivenMemory::kOutput],
              given.part == Part::kAttention ? nullptr : between_name(given.part)),
      part(given.part),
      between_type(given.type) {
  std::memcpy(q.data(), inputs.q.data(), inputs.q.size());
  std::memcpy(k.data(), inputs.k.data(), inputs.k.size());
  std::memcpy(v.data(), inputs.v.data(), inputs.v.size());
  if (is_given(part)) std::memcpy(between.data(), given.given.data(), between.size());
  if (fill[GivenMemory::kOutput] != MemoryFill::kNaN) return;
  poison(o, p.dtype);
  poison(lse, DType::kFp32);
  if (part == Part::kScores) poison(between, between_type);
}

void RunMemory::place(RunDevice& device, RunRequest& request, std::size_t guard) {
  const auto put = [&](const char* what, GuardedBuffer& buffer, bool written) {
    return device.place(what, buffer.data(), buffer.size(), guard, written, buffer.around());
  };
  request.q = put("q", q, true);
  request.k = put("k", k, true);
  request.v = put("v", v, true);
  request.o = put("o", o, true);
  request.lse = static_cast<float*>(put("lse", lse, true));
  request.workspace = put("the workspace", workspace, false);
  request.part = part;
  request.between_type = between_type;
  request.between = put(between_name(part), between, true);
}

void RunMemory::place_for_check(RunRequest& request) {
  const auto put = [](GuardedBuffer& buffer, const char* name, bool initialised) {
    host::register_memory(buffer.data(), buffer.size(), name, initialised);
    return static_cast<void*>(buffer.size() == 0 ? nullptr : buffer.data());
  };
  request.q = put(q, "q", true);
  request.k = put(k, "k", true);
  request.v = put(v, "v", true);
  for (const GuardedBuffer* input : {&q, &k, &v}) host::mark_input(input->data(), input->size());
  request.o = put(o, "o", false);
  request.lse = static_cast<float*>(put(lse, "lse", false));
  request.workspace = put(workspace, "workspace", false);
  request.part = part;
  request.between_type = between_type;
  if (part == Part::kAttention) return;
  request.between = put(between, between_name(part), is_given(part));
  if (is_given(part)) host::mark_input(between.data(), between.size());
}

void RunMemory::check_guards(const Kernel& kernel) const {
  const std::array<std::pair<const char*, const GuardedBuffer*>, 7> buffers = {
      {{"q", &q},
       {"k", &k},
       {"v", &v},
       {"o", &o},
       {"lse", &lse},
       {"the workspace", &workspace},
       {between_name(part), part == Part::kAttention ? nullptr : &between}}};
  for (const auto& [what, buffer] : buffers)
    if (const auto offset = buffer == nullptr ? std::nullopt : buffer->first_write_outside())
      throw_wrote_outside(kernel, what, *offset, buffer->size());
}

void take_output(TensorData& data, const RunMemory& memory, const Capture& capture) {
  const Problem& p = capture.problem;
  const bool is_o = data.id == Tensor::kO, is_s = data.id == Tensor::kS;
  const GuardedBuffer& buffer = is_o ? memory.o : is_s ? memory.between : memory.lse;
  const DType stored = is_s ? memory.between_type : data.dtype;
  const std::int64_t width = is_o ? p.head_dim_v : is_s ? p.seqlen_k : 1;
  const Strides strides =
      dense_strides(is_o ? p.layout : Layout::kBHSD, p.heads, p.seqlen_q, width);
  const std::size_t size = size_of(stored);
  const Region& r = capture.region;
  data.bytes.resize(static_cast<std::size_t>(data.size()) * size_of(data.dtype));
  std::size_t cell = 0;
  for (std::int64_t b = r.origin[0]; b < r.origin[0] + r.extent[0]; ++b) {
    for (std::int64_t h = r.origin[1]; h < r.origin[1] + r.extent[1]; ++h) {
      for (std::int64_t q = r.origin[2]; q < r.origin[2] + r.extent[2]; ++q) {
        const std::byte* row =
            buffer.data() +
            static_cast<std::size_t>(b * strides.batch + h * strides.head + q * strides.seq) * size;
        if (stored == data.dtype)
          std::memcpy(data.bytes.data() + cell * size, row, static_cast<std::size_t>(width) * size);
        for (std::int64_t d = 0; d < width; ++d, ++cell) {
          const bool unwritten = is_poison(row + static_cast<std::size_t>(d) * size, stored);
          data.writes[cell] =
              unwritten ? std::uint8_t{0} : std::max<std::uint8_t>(data.writes[cell], 1);
          if (stored == data.dtype) continue;
          const std::uint32_t bits = poison_of(data.dtype);
          if (unwritten)
            std::memcpy(data.bytes.data() + cell * size_of(data.dtype), &bits, size_of(data.dtype));
          else
            store_element(data.bytes.data(), data.dtype, static_cast<std::int64_t>(cell),
                          load_element(row, stored, d));
        }
      }
    }
  }
}

std::vector<Unwritten> find_unwritten(const Problem& p, const RunMemory& memory, bool has_lse,
                                      bool or_as_allocated) {
  std::vector<Unwritten> out;
  const auto look = [&](Tensor tensor, const GuardedBuffer& buffer, DType dtype, Layout layout,
                        std::int64_t width) {
    const std::size_t size = size_of(dtype);
    Unwritten found;
    found.tensor = tensor;
    for_each_element(
        layout, p.batch, p.heads, p.seqlen_q, width, [&](const auto& index, std::int64_t cell) {
          const std::byte* const at = buffer.data() + static_cast<std::size_t>(cell) * size;
          const bool as_allocated =
              or_as_allocated &&
              std::all_of(at, at + size, [](std::byte byte) { return byte == std::byte{0xFF}; });
          if ((as_allocated || is_poison(at, dtype)) && found.cells++ == 0) found.index = index;
        });
    if (found.cells > 0) out.push_back(found);
  };
  look(Tensor::kO, memory.o, p.dtype, p.layout, p.head_dim_v);
  if (has_lse) look(Tensor::kLse, memory.lse, DType::kFp32, Layout::kBHSD, 1);
  return out;
}

}  // namespace attn_diag
