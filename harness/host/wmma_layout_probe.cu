// Prints which lane holds which element of a wmma fragment, and which elements a product reads.
//
// Plain CUDA C++: the same file runs on a device and on the host executor, which must agree with
// fixtures/wmma/layout_sm80.csv.
//   nvcc -std=c++20 -arch=sm_90 -o wmma_layout_probe harness/host/wmma_layout_probe.cu
//   ./wmma_layout_probe                                     # prints
//   ./wmma_layout_probe fixtures/wmma/layout_sm80.csv       # compares; exit code 1 and the lines that differ
// The host executor's is build target wmma_layout_probe; the ctest of that name compares.
//
// One line a fragment type and element:
//   fragment,shape,type,memory,element,read,cells
// memory     the order of the matrix in memory it was loaded from
// element    i of x[i]
// read       in how many of the 32 lanes a product depends on that element: 32, or 0 for a mere copy
// cells      row:column of that element in lane 0, 1, ... 31
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace wmma = nvcuda::wmma;

constexpr int kLanes = 32;
constexpr int kMostElements = 16;
constexpr int kStride = 32;  // of the matrices in memory, which are at most 32 x 32
constexpr int kCells = kStride * kStride;

// What a kernel found out, for every element and lane.
struct Found {
  int row[kMostElements][kLanes];
  int column[kMostElements][kLanes];
  int read[kMostElements][kLanes];
};

template <class T>
__device__ int whole(T x) {
  return static_cast<int>(static_cast<float>(x));
}

__device__ int this_lane() { return static_cast<int>(threadIdx.x); }

template <class T, class Fragment>
__device__ void record(const Fragment& rows, const Fragment& columns, Found* found) {
  for (int i = 0; i < rows.num_elements; ++i) {
    found->row[i][this_lane()] = whole<T>(rows.x[i]);
    found->column[i][this_lane()] = whole<T>(columns.x[i]);
  }
}

// A fragment that is 0 but for element `i` of `lane`.
template <class Fragment>
__device__ void set_one(Fragment& fragment, int i, int lane) {
  using T = typename Fragment::element_type;
  wmma::fill_fragment(fragment, static_cast<T>(0.0f));
  if (this_lane() == lane) fragment.x[i] = static_cast<T>(1.0f);
}

// Does the product depend on element `i` of `lane`, the only one of its fragment that is not 0?
template <class A, class B, class C>
__device__ void record_read(const A& a, const B& b, const C& c, int i, int lane, Found* found) {
  C d;
  wmma::mma_sync(d, a, b, c);
  bool some = false;
  for (int j = 0; j < d.num_elements; ++j) some = some || whole(d.x[j]) != 0;
  const int any = __any_sync(0xFFFFFFFFu, some);
  if (this_lane() == lane) found->read[i][lane] = any;
}

// `rows` and `columns` hold each cell's row and column, in the order that Layout says. Other fragments are
// ones, so that the product depends on every element of this one that it reads.
template <int m, int n, class T, class Layout>
__global__ void probe_a(const T* rows, const T* columns, Found* found) {
  wmma::fragment<wmma::matrix_a, m, n, 16, T, Layout> a, other;
  wmma::load_matrix_sync(a, rows, kStride);
  wmma::load_matrix_sync(other, columns, kStride);
  record<T>(a, other, found);
  wmma::fragment<wmma::matrix_b, m, n, 16, T, Layout> b;
  wmma::fragment<wmma::accumulator, m, n, 16, float> c;
  wmma::fill_fragment(b, static_cast<T>(1.0f));
  wmma::fill_fragment(c, 0.0f);
  for (int i = 0; i < a.num_elements; ++i)
    for (int lane = 0; lane < kLanes; ++lane) {
      set_one(a, i, lane);
      record_read(a, b, c, i, lane, found);
    }
}

template <int m, int n, class T, class Layout>
__global__ void probe_b(const T* rows, const T* columns, Found* found) {
  wmma::fragment<wmma::matrix_b, m, n, 16, T, Layout> b, other;
  wmma::load_matrix_sync(b, rows, kStride);
  wmma::load_matrix_sync(other, columns, kStride);
  record<T>(b, other, found);
  wmma::fragment<wmma::matrix_a, m, n, 16, T, Layout> a;
  wmma::fragment<wmma::accumulator, m, n, 16, float> c;
  wmma::fill_fragment(a, static_cast<T>(1.0f));
  wmma::fill_fragment(c, 0.0f);
  for (int i = 0; i < b.num_elements; ++i)
    for (int lane = 0; lane < kLanes; ++lane) {
      set_one(b, i, lane);
      record_read(a, b, c, i, lane, found);
    }
}

template <int m, int n, class T, wmma::layout_t kLayout>
__global__ void probe_accumulator(const T* rows, const T* columns, Found* found) {
  wmma::fragment<wmma::accumulator, m, n, 16, T> c, other;
  wmma::load_matrix_sync(c, rows, kStride, kLayout);
  wmma::load_matrix_sync(other, columns, kStride, kLayout);
  record<T>(c, other, found);
  wmma::fragment<wmma::matrix_a, m, n, 16, half, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, m, n, 16, half, wmma::row_major> b;
  wmma::fill_fragment(a, static_cast<half>(0.0f));
  wmma::fill_fragment(b, static_cast<half>(0.0f));
  for (int i = 0; i < c.num_elements; ++i)
    for (int lane = 0; lane < kLanes; ++lane) {
      set_one(c, i, lane);
      record_read(a, b, c, i, lane, found);
    }
}

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "wmma_layout_probe: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(2);
}

template <class T>
const char* name_of();
template <>
const char* name_of<half>() {
  return "half";
}
template <>
const char* name_of<__nv_bfloat16>() {
  return "bfloat16";
}
template <>
const char* name_of<float>() {
  return "float";
}

// Memory on the device, or what stands in for it.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count) : x_count(count) {
    void* memory = nullptr;
    check(cudaMalloc(&memory, count * sizeof(T)), "cudaMalloc");
    x_memory = static_cast<T*>(memory);
  }
  ~DeviceArray() { cudaFree(x_memory); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  void write(const T* from) {
    check(cudaMemcpy(x_memory, from, x_count * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  void read(T* to) const {
    check(cudaMemcpy(to, x_memory, x_count * sizeof(T), cudaMemcpyDeviceToHost), "cudaMemcpy");
  }
  T* get() const { return x_memory; }

 private:
  std::size_t x_count;
  T* x_memory = nullptr;
};

// Prints what `kernel` finds out about a fragment of `elements` elements a lane.
template <class T>
void probe(std::ostream& out, const char* fragment, int m, int n, bool by_columns, int elements,
           void (*kernel)(const T*, const T*, Found*)) {
  std::vector<T> cells[2];
  for (int i = 0; i < kCells; ++i) {
    const int slow = i / kStride, fast = i % kStride;
    cells[0].push_back(static_cast<T>(static_cast<float>(by_columns ? fast : slow)));
    cells[1].push_back(static_cast<T>(static_cast<float>(by_columns ? slow : fast)));
  }
  DeviceArray<T> rows(kCells), columns(kCells);
  DeviceArray<Found> device(1);
  rows.write(cells[0].data());
  columns.write(cells[1].data());
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(1);
  config.blockDim = dim3(kLanes);
  check(cudaLaunchKernelEx(&config, kernel, static_cast<const T*>(rows.get()),
                           static_cast<const T*>(columns.get()), device.get()),
        "launch");
  check(cudaDeviceSynchronize(), "kernel");
  std::vector<Found> found(1);
  device.read(found.data());
  for (int i = 0; i < elements; ++i) {
    int read = 0;
    for (int lane = 0; lane < kLanes; ++lane) read += found[0].read[i][lane];
    out << fragment << ",m" << m << 'n' << n << "k16," << name_of<T>() << ','
        << (by_columns ? "col_major" : "row_major") << ',' << i << ',' << read << ',';
    for (int lane = 0; lane < kLanes; ++lane)
      out << (lane == 0 ? "" : " ") << found[0].row[i][lane] << ':' << found[0].column[i][lane];
    out << '\n';
  }
}

template <int m, int n, class T, class Layout>
void probe_operands(std::ostream& out, bool by_columns) {
  constexpr int kA = wmma::fragment<wmma::matrix_a, m, n, 16, T, Layout>::num_elements;
  constexpr int kB = wmma::fragment<wmma::matrix_b, m, n, 16, T, Layout>::num_elements;
  probe<T>(out, "matrix_a", m, n, by_columns, kA, probe_a<m, n, T, Layout>);
  probe<T>(out, "matrix_b", m, n, by_columns, kB, probe_b<m, n, T, Layout>);
}

template <int m, int n, class T>
void probe_accumulators(std::ostream& out) {
  constexpr int kC = wmma::fragment<wmma::accumulator, m, n, 16, T>::num_elements;
  probe<T>(out, "accumulator", m, n, false, kC, probe_accumulator<m, n, T, wmma::mem_row_major>);
  probe<T>(out, "accumulator", m, n, true, kC, probe_accumulator<m, n, T, wmma::mem_col_major>);
}

template <int m, int n>
void probe_shape(std::ostream& out) {
  probe_operands<m, n, half, wmma::row_major>(out, false);
  probe_operands<m, n, half, wmma::col_major>(out, true);
  probe_operands<m, n, __nv_bfloat16, wmma::row_major>(out, false);
  probe_operands<m, n, __nv_bfloat16, wmma::col_major>(out, true);
  probe_accumulators<m, n, float>(out);
  probe_accumulators<m, n, half>(out);
}

// The number of lines in which `found` and the file differ; the first of them are printed.
int differences(std::istream& found, std::istream& file) {
  constexpr int kMostPrinted = 10;
  int count = 0;
  for (int number = 1;; ++number) {
    std::string here, there;
    const bool some = static_cast<bool>(std::getline(found, here));
    if (!static_cast<bool>(std::getline(file, there)) && !some) return count;
    if (here == there) continue;
    if (++count <= kMostPrinted)
      std::printf("line %d\n  found    %s\n  expected %s\n", number, here.c_str(), there.c_str());
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::stringstream found;
  found << "fragment,shape,type,memory,element,read,cells\n";
  probe_shape<16, 16>(found);
  probe_shape<32, 8>(found);
  probe_shape<8, 32>(found);
  if (argc < 2) {
    std::fputs(found.str().c_str(), stdout);
    return 0;
  }
  std::ifstream file(argv[1]);
  if (!file) {
    std::fprintf(stderr, "wmma_layout_probe: cannot read %s\n", argv[1]);
    return 2;
  }
  const int count = differences(found, file);
  if (count == 0)
    std::printf("wmma layout: as in %s\n", argv[1]);
  else
    std::printf("wmma layout: %d lines differ from %s\n", count, argv[1]);
  return count == 0 ? 0 : 1;
}
