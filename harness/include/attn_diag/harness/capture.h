// A capture: everything recorded from one run, in memory. A dump is a capture in an HDF5 file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attn_diag/harness/shared_bytes.h"
#include "attn_diag/kernels/arithmetic.h"
#include "attn_diag/kernels/geometry.h"
#include "attn_diag/kernels/problem.h"
#include "attn_diag/kernels/stage.h"

namespace attn_diag {

// The rows that were recorded, absolute and half open.
struct Region {
  std::array<std::int64_t, 3> origin{0, 0, 0};  // batch, head, query
  std::array<std::int64_t, 3> extent{0, 0, 0};
};
Region whole(const Problem& problem);

// What a kernel leaves in its output memory: o and lse, or S.
std::span<const Tensor> outputs_of(Part part);
bool is_output(Tensor t, Part part);

// One tensor of a capture: dense row-major over `shape`; cell (i0, i1, ...) is the absolute
// coordinate (origin[0] + i0, origin[1] + i1, ...) on the axes info(id).axes.
struct TensorData {
  Tensor id = Tensor::kS;
  DType dtype = DType::kFp32;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> origin;
  std::vector<std::byte> bytes;
  std::vector<std::uint8_t>
      writes;  // how often each cell was written, up to 255; empty: not counted
  // How far each cell may be from what the kernel had, where it was reconstructed and not recorded: it
  // adds to every limit a comparison has. inf: the cell is not known. Empty: recorded as it was.
  std::vector<float> uncertainty;

  std::int64_t size() const;            // cells
  double at(std::int64_t index) const;  // the value of a cell, widened
};

// Where a binary came from and whether it is what its sources now say.
struct SourceState {
  std::string path;
  std::uint64_t built_hash = 0;
  std::uint64_t disk_hash = 0;
  bool found = false;  // on disk
};
struct Provenance {
  std::string kernel;    // as the user named it: "split_k@reduce-counts-l-twice"
  std::string library;   // path of the shared object
  std::string build_id;  // GNU build id, hex
  std::string compiler, flags;
  std::string backend;          // "host", "cuda"
  std::string device;           // "SIMT host executor", "NVIDIA H200 (sm_90)"
  std::string driver;           // cuda: "580.82.07 (CUDA 13.0)"
  std::string gate;             // stage name or "full"
  std::string schedule;         // host executor
  std::string async_copies;     // host executor: "late", "early"
  std::uint64_t mma_order = 0;  // host executor
  std::string command_line, created, generator_version, host;
  std::string inputs;  // "randn", ...
  std::uint64_t seed = 0;
  double input_scale = 1;  // the inputs were multiplied by it before they were rounded
  std::vector<SourceState> sources;

  bool stale() const;            // a source on disk differs from what was built
  bool sources_missing() const;  // a source cannot be found: staleness unknown
};

// The output of a run is, bit for bit, that of an earlier run of the same case whose sources were
// others: the edit between the two did nothing here.
struct SameOutput {
  std::string before;                       // when that run was, as Provenance::created
  std::vector<std::string> changed;         // paths of the sources that differ on disk since then
  std::string build_id_then, build_id_now;  // hex; empty: unknown
  bool stale = false;  // sources on disk differ from what this binary was built from

  enum class Why : std::uint8_t {
    kNotRebuilt,       // the same build id: the binary cannot contain the edit
    kRebuiltTooSoon,   // another build id, but the sources were changed again since it was built
    kEditIsElsewhere,  // another build id, built from what is on disk: the edit does not touch this
    kUnknown,          // one of the binaries has no build id
  };
  Why why() const;
};

// A cell that was never written, or more than once.
struct CoverageFault {
  Tensor tensor;
  std::array<std::int64_t, 5> index{};  // absolute; the first info(tensor).rank are valid
  int writes = 0;
};
struct Coverage {
  std::int64_t never = 0, repeatedly = 0;
  std::optional<CoverageFault> first_never, first_repeated;  // lowest index, per tensor order
};

// What running the case again on the same device gave; on a GPU it is always run again. A result that moves by
// more than rounding is a race and never agrees, whatever it compares to.
struct Capture;
struct Repetition {
  int runs = 1;
  // Cells whose bits differ between the runs.
  std::array<std::int64_t, kNumTensors> differing{};
  struct Cell {
    Tensor tensor = Tensor::kS;
    std::array<std::int64_t, 5> index{};  // absolute; the first info(tensor).rank are valid
    double first = 0, second = 0;         // its values in the two runs
  };
  std::optional<Cell> first;              // in pipeline order, then lowest index
  std::shared_ptr<const Capture> second;  // the other run, where it differs; not stored in dumps
  // No cell is further from the other run's than rounding can take two runs: sums in the order in which threads
  // or blocks arrive, or a race whose effect is below rounding.
  bool within_rounding = false;

  bool moved() const { return first.has_value(); }
  bool unsound() const { return moved() && !within_rounding; }
  std::int64_t moved_cells() const;
};

// An input that the kernel wrote, though it is given q, k and v to read: whatever comes of it depends on who
// reads first, and a caller would find other data.
struct InputWrite {
  char input = 'q';                     // or 'k', 'v'
  std::int64_t cells = 0;               // whose bits are others than were given
  std::array<std::int64_t, 4> index{};  // of the first: batch, head, query or key, dim
  double before = 0, after = 0;         // its values
};

class Oracle;

struct Capture {
  Problem problem;
  Geometry geometry;
  Arithmetic arithmetic;
  Provenance provenance;
  Region region;
  // q, k, v in the problem's dtype and layout.
  SharedBytes q, k, v;
  // Set where recorded.
  std::array<std::optional<TensorData>, kNumTensors> tensors;
  // Why a tensor is not there, for those a kernel cannot expose.
  std::array<std::string, kNumTensors> exempt;
  std::array<Coverage, kNumTensors> coverage;
  Repetition repetition;
  std::vector<InputWrite> input_writes;   // not stored in dumps, but for a note
  std::optional<SameOutput> same_output;  // as the run history knows; not stored in dumps
  bool isolated = false;                  // every stage was fed the reference's inputs
  std::vector<std::string> notes;         // of the backend: what the run cannot show, odd events
  std::shared_ptr<Oracle> oracle;         // what the reference said of the case so far; may be null

  bool has(Tensor t) const { return tensors[static_cast<std::size_t>(t)].has_value(); }
  const TensorData& operator[](Tensor t) const { return *tensors[static_cast<std::size_t>(t)]; }
};

// Shape of the whole tensor: info(t).axes by axis_extent.
std::vector<std::int64_t> tensor_shape(Tensor t, const Problem& problem, const Geometry& geometry);

// Converts one element of a buffer of the given type. fp16 and bf16 by IEEE rules (exact).
double load_element(const void* data, DType dtype, std::int64_t index);
// Rounds to nearest even and stores.
void store_element(void* data, DType dtype, std::int64_t index, double value);

}  // namespace attn_diag
