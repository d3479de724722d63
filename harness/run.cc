// One run of a kernel on the host executor, recorded.
#include "attn_diag/harness/run.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <ctime>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "attn_diag/harness/error.h"
#include "attn_diag/harness/host/executor.h"
#include "attn_diag/reference/reference.h"
#include "harness/coverage.h"
#include "harness/guarded_buffer.h"
#include "harness/run_plan.h"

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

bool is_poison(const std::byte* element, DType dtype) {
  const std::uint32_t bits = poison_of(dtype);
  return std::memcmp(element, &bits, size_of(dtype)) == 0;
}

std::int64_t rows_of(const Problem& p) {
  return static_cast<std::int64_t>(p.batch) * p.heads * p.seqlen_q;
}

// The memory a kernel is given. Reads outside q, k and v give NaN, and writes outside o, lse and
// workspace are found.
struct DeviceMemory {
  GuardedBuffer q, k, v, o, lse, workspace;

  DeviceMemory(const Problem& p, const Geometry& g, const InputData& inputs,
               std::size_t workspace_bytes)
      : q(inputs.q.size(), guard(p, g)),
        k(inputs.k.size(), guard(p, g)),
        v(inputs.v.size(), guard(p, g)),
        o(static_cast<std::size_t>(rows_of(p) * p.head_dim_v) * size_of(p.dtype), guard(p, g)),
        lse(static_cast<std::size_t>(rows_of(p)) * sizeof(float), guard(p, g)),
        workspace(workspace_bytes, guard(p, g)) {
    std::memcpy(q.data(), inputs.q.data(), inputs.q.size());
    std::memcpy(k.data(), inputs.k.data(), inputs.k.size());
    std::memcpy(v.data(), inputs.v.data(), inputs.v.size());
    poison(o.data(), p.dtype, rows_of(p) * p.head_dim_v);
    poison(lse.data(), DType::kFp32, rows_of(p));
  }

  // One tile too far in the sparser memory order, as a kernel without tail checks goes; up to 1
  // MiB.
  static std::size_t guard(const Problem& p, const Geometry& g) {
    const std::int64_t row = std::int64_t{p.heads} * std::max(p.head_dim, p.head_dim_v);
    const std::int64_t bytes = row * std::max(g.tile.block_m, g.tile.block_n) *
                               static_cast<std::int64_t>(size_of(p.dtype));
    return static_cast<std::size_t>(std::clamp<std::int64_t>(bytes, 4096, 1 << 20));
  }
};

void check_guards(const Kernel& kernel, const DeviceMemory& memory) {
  const std::array<std::pair<const char*, const GuardedBuffer*>, 6> buffers = {
      {{"q", &memory.q},
       {"k", &memory.k},
       {"v", &memory.v},
       {"o", &memory.o},
       {"lse", &memory.lse},
       {"the workspace", &memory.workspace}}};
  for (const auto& [what, buffer] : buffers) {
    if (const auto offset = buffer->first_write_outside()) {
      throw Error(fmt::format(
          "{} wrote outside {}: first at byte {} of a buffer of {} bytes. Check the index "
          "arithmetic and the tail predicates of its stores.",
          kernel.spec(), what, *offset, buffer->size()));
    }
  }
}

void check_inputs(const Problem& p, const InputData& inputs) {
  const std::int64_t kv_rows = std::int64_t{p.batch} * p.kv_heads * p.seqlen_k;
  const std::array<std::tuple<const char*, std::size_t, std::int64_t>, 3> fields = {
      {{"q", inputs.q.size(), rows_of(p) * p.head_dim},
       {"k", inputs.k.size(), kv_rows * p.head_dim},
       {"v", inputs.v.size(), kv_rows * p.head_dim_v}}};
  for (const auto& [what, found, elements] : fields) {
    const std::size_t expected = static_cast<std::size_t>(elements) * size_of(p.dtype);
    if (found != expected) {
      throw Error(fmt::format("The problem needs {} bytes of {}, but {} were given.", expected,
                              what, found));
    }
  }
}

TensorData allocate(Tensor t, DType dtype, bool with_values, const Capture& capture) {
  TensorData data;
  data.id = t;
  data.dtype = dtype;
  data.shape = tensor_shape(t, capture.problem, capture.geometry);
  data.origin.assign(data.shape.size(), 0);
  for (std::size_t i = 0; i < 3; ++i) {
    data.shape[i] = capture.region.extent[i];
    data.origin[i] = capture.region.origin[i];
  }
  const auto cells = static_cast<std::size_t>(data.size());
  if (with_values) data.bytes.assign(cells * size_of(dtype), std::byte{0xFF});
  data.writes.assign(cells, 0);
  return data;
}

TapView view_of(TensorData& data, const Region& region) {
  TapView view;
  if (!data.bytes.empty()) view.record = reinterpret_cast<float*>(data.bytes.data());
  view.writes = data.writes.data();
  for (std::size_t i = 0; i < 3; ++i) {
    view.origin[i] = region.origin[i];
    view.extent[i] = region.extent[i];
  }
  view.inner0 = data.shape.size() > 3 ? data.shape[3] : 1;
  view.inner1 = data.shape.size() > 4 ? data.shape[4] : 1;
  return view;
}

using Replacements = std::array<std::vector<float>, kNumTensors>;

// The reference's values of the masked tensors over the region, rounded to fp32.
Replacements make_replacements(const Capture& capture, std::uint32_t mask, int threads) {
  Replacements out;
  if (mask == 0) return out;
  const Region& region = capture.region;
  std::array<std::int64_t, kNumTensors> inner{};
  for (const TensorInfo& tensor : kTensors) {
    if ((mask & tensor_bit(tensor.id)) == 0) continue;
    const auto at = static_cast<std::size_t>(tensor.id);
    const auto shape = tensor_shape(tensor.id, capture.problem, capture.geometry);
    inner[at] = 1;
    for (std::size_t i = 3; i < shape.size(); ++i) inner[at] *= shape[i];
    out[at].resize(static_cast<std::size_t>(region.extent[0] * region.extent[1] * region.extent[2] *
                                            inner[at]));
  }
  const auto narrow = [](std::int64_t x) { return static_cast<std::int32_t>(x); };
  reference::Options options;
  options.tensors = mask;
  options.bounds = false;
  options.threads = threads;
  options.batch_begin = narrow(region.origin[0]);
  options.batch_end = narrow(region.origin[0] + region.extent[0]);
  options.head_begin = narrow(region.origin[1]);
  options.head_end = narrow(region.origin[1] + region.extent[1]);
  options.query_begin = narrow(region.origin[2]);
  options.query_end = narrow(region.origin[2] + region.extent[2]);
  // Blocks are disjoint rows of the outputs, so the callbacks need no lock.
  reference::for_each_row_block(
      capture.problem, capture.geometry, capture.arithmetic,
      {capture.q.data(), capture.k.data(), capture.v.data()}, options,
      [&](const reference::RowBlock& block) {
        const std::int64_t row =
            ((block.batch - region.origin[0]) * region.extent[1] + block.head - region.origin[1]) *
                region.extent[2] +
            block.query_begin - region.origin[2];
        for (std::size_t t = 0; t < kNumTensors; ++t) {
          if (out[t].empty() || block.value[t] == nullptr) continue;
          std::transform(block.value[t], block.value[t] + block.rows * inner[t],
                         out[t].begin() + row * inner[t],
                         [](double x) { return static_cast<float>(x); });
        }
      });
  return out;
}

// Copies the region of an output out of the kernel's memory. A cell without its poison was written
// at least once; the tap, if the kernel has one there, knows how often.
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

std::string now_utc() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
}

std::string host_name() {
  std::array<char, 256> name_of_host{};
  if (gethostname(name_of_host.data(), name_of_host.size() - 1) != 0) return "";
  return name_of_host.data();
}

void fill_provenance(Capture& capture, const Kernel& kernel, const InputData& inputs,
                     const RunOptions& options, Gate gate) {
  Provenance& p = capture.provenance;
  p = kernel.provenance();
  p.backend = kernel.build().backend;
  p.device = "SIMT host executor";
  p.gate = name(gate);
  p.schedule = options.schedule;
  p.created = now_utc();
  p.generator_version = ATTN_DIAG_VERSION;
  p.host = host_name();
  p.inputs = inputs.kind;
  p.seed = inputs.seed;
  p.input_scale = inputs.scale;
}

host::LaunchOptions launch_options(const RunOptions& options) {
  host::LaunchOptions launch;
  try {
    launch.schedule = host::parse_schedule(options.schedule);
  } catch (const std::invalid_argument& e) {
    throw Error(e.what());
  }
  launch.workers = options.threads;
  launch.step_limit = static_cast<std::uint64_t>(std::max<std::int64_t>(options.step_limit, 0));
  return launch;
}

// Runs the request; findings of the executor and a status that is not kOk become Errors.
void launch(const Kernel& kernel, RunRequest request, const host::LaunchOptions& options,
            Capture& capture) {
  std::array<char, 1024> message{};
  request.error = message.data();
  request.error_capacity = message.size();
  const host::LaunchScope scope(options);
  const Status status = kernel.info().run(request);
  const host::LaunchReport& report = scope.report();
  if (!report.findings.empty()) {
    std::string text = kernel.spec() + " did not complete: " + report.findings.front().message;
    if (report.findings.size() > 1)
      text +=
          fmt::format(" ({} more findings of this kind or others.)", report.findings.size() - 1);
    throw Error(text);
  }
  if (status != Status::kOk) {
    throw Error(fmt::format(
        "{} {}: {}", kernel.spec(),
        status == Status::kUnsupported ? "does not support this run" : "failed to launch",
        message[0] != 0 ? message.data() : "it does not say why."));
  }
  capture.notes.insert(capture.notes.end(), report.notes.begin(), report.notes.end());
}

void check_gate(const Kernel& kernel, Gate gate) {
  if ((kernel.info().gates >> static_cast<unsigned>(gate) & 1u) != 0) return;
  std::string there;
  for (std::size_t g = 0; g < kGateNames.size(); ++g) {
    if ((kernel.info().gates >> g & 1u) == 0) continue;
    there += (there.empty() ? "" : ", ") + std::string(kGateNames[g]);
  }
  throw Error(fmt::format("{} was built without gate {}. It has: {}.", kernel.spec(), name(gate),
                          there.empty() ? "none" : there));
}

}  // namespace

Capture run_kernel(const Kernel& given, const Problem& problem, const InputData& inputs,
                   const RunOptions& options) {
  const host::LaunchOptions launch_with = launch_options(options);
  const bool lockstep = launch_with.schedule.kind == host::ScheduleKind::kLockstep;
  const Kernel kernel = lockstep && !given.build().lockstep
                            ? Kernel::load(given.spec(), given.build().backend, true)
                            : given;
  if (std::string_view(kernel.build().backend) != "host") {
    throw Error(
        fmt::format("{} was built for backend {}, which this program cannot run; it runs "
                    "backend host.",
                    kernel.spec(), kernel.build().backend));
  }
  const Gate gate = options.taps ? options.gate : Gate::kFull;
  check_gate(kernel, gate);
  const Geometry geometry = plan_geometry(kernel, problem, options);
  check_inputs(problem, inputs);
  check_memory(kernel, problem, geometry, options);

  Capture capture;
  capture.problem = problem;
  capture.geometry = geometry;
  capture.arithmetic = kernel.info().arithmetic(problem, geometry);
  capture.region = resolve_region(options.region, problem);
  capture.isolated = options.isolate && options.taps;
  capture.q = inputs.q;
  capture.k = inputs.k;
  capture.v = inputs.v;
  fill_provenance(capture, kernel, inputs, options, gate);
  capture.notes.emplace_back(host::limits_in_one_line());
  if (inputs.has_nonfinite) capture.notes.emplace_back("q, k or v hold NaN or infinity.");

  DeviceMemory memory(problem, geometry, inputs, kernel.info().workspace_bytes(problem, geometry));
  RunRequest request;
  request.problem = problem;
  request.geometry = geometry;
  request.gate = gate;
  request.q = memory.q.data();
  request.k = memory.k.data();
  request.v = memory.v.data();
  request.o = memory.o.data();
  request.lse = reinterpret_cast<float*>(memory.lse.data());
  request.workspace = memory.workspace.data();

  const bool has_outputs = last_stage(gate) == Stage::kReduce;
  const std::uint32_t recorded = recorded_tensors(kernel, geometry, options);
  const std::uint32_t replaced = replaced_tensors(kernel, geometry, options);
  const Replacements replacements = make_replacements(capture, replaced, options.threads);
  for (const TensorInfo& tensor : kTensors) {
    const auto at = static_cast<std::size_t>(tensor.id);
    const bool output = tensor.id == Tensor::kO || tensor.id == Tensor::kLse;
    if ((recorded & tensor_bit(tensor.id)) != 0 || (output && has_outputs)) {
      const DType dtype = tensor.id == Tensor::kO ? problem.dtype : DType::kFp32;
      capture.tensors[at] = allocate(tensor.id, dtype, !output, capture);
      request.taps.view[at] = view_of(*capture.tensors[at], capture.region);
    } else if (!kernel.info().exposure[at].exposed && !output && defined_for(tensor.id, geometry)) {
      const char* reason = kernel.info().exposure[at].exempt_reason;
      capture.exempt[at] = reason != nullptr ? reason : "the kernel does not say why";
    }
    if (!replacements[at].empty()) request.taps.view[at].replace = replacements[at].data();
  }

  launch(kernel, request, launch_with, capture);
  check_guards(kernel, memory);
  if (has_outputs) {
    take_output(*capture.tensors[static_cast<std::size_t>(Tensor::kO)], memory.o, capture);
    take_output(*capture.tensors[static_cast<std::size_t>(Tensor::kLse)], memory.lse, capture);
  }
  settle_coverage(capture);
  return capture;
}

}  // namespace attn_diag
