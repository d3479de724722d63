// nvcuda::wmma for 16-bit inputs: fragments of m16n16k16, m32n8k16 and m8n32k16, their loads, stores and
// products. Element counts are those of CUDA 13; the lane that holds an element is that of compute
// capability 8.0 to 9.0 (harness/host/fragment_layout.h).
//
// Undefined in CUDA, a finding here: x[i] past num_elements; a fragment that was never filled, loaded or
// computed; lanes with different pointers, strides or layouts; a store into a thread's own memory; a
// pointer or stride that is not aligned; a warp whose lanes do not all come.
#pragma once

#include <bit>
#include <concepts>
#include <type_traits>

#include "attn_diag_host/bfloat16.h"
#include "attn_diag_host/half.h"
#include "attn_diag_host/matrix_calls.h"

namespace attn_diag::host {

template <class T>
constexpr MatrixType kMatrixType = std::is_same_v<T, float>    ? MatrixType::kFloat
                                   : std::is_same_v<T, __half> ? MatrixType::kHalf
                                                               : MatrixType::kBfloat16;

// An index, and where in the kernel it was used.
struct FragmentIndex {
  template <class I>
  requires std::integral<I> || std::is_enum_v<I>
  constexpr FragmentIndex(I i, const char* f = __builtin_FILE(), int l = __builtin_LINE())
      : value(static_cast<long long>(i)), file(f), line(l) {}

  long long value;
  const char* file;
  int line;
};

// CUDA's array x[]. Poisoned until something is written.
template <class T, int kCount>
class FragmentElements {
 public:
  FragmentElements() { __builtin_memset(x_elements, 0xFF, sizeof x_elements); }
  T& operator[](FragmentIndex i) { return x_elements[checked(i)]; }
  const T& operator[](FragmentIndex i) const { return x_elements[checked(i)]; }
  T* begin() { return x_elements; }
  T* end() { return x_elements + kCount; }
  const T* begin() const { return x_elements; }
  const T* end() const { return x_elements + kCount; }

 private:
  static long long checked(const FragmentIndex& i) {
    if (i.value < 0 || i.value >= kCount) [[unlikely]]
      fragment_index_out_of_range(i.value, kCount, i.file, i.line);
    return i.value;
  }
  T x_elements[kCount];
};

template <class T, int kCount>
struct __align__(8) FragmentBase {
  enum { num_elements = kCount };
  enum { num_storage_elements = kCount };
  using element_type = T;
  using storage_element_type = T;

  FragmentElements<T, kCount> x;
  bool x_set = false;
};

template <int kM, int kN, int kK>
concept MatrixSizes = (kM == 16 && kN == 16 && kK == 16) || (kM == 32 && kN == 8 && kK == 16) ||
                      (kM == 8 && kN == 32 && kK == 16);
template <int kM>
constexpr MatrixShape kMatrixShape = kM == 16   ? MatrixShape::k16x16x16
                                     : kM == 32 ? MatrixShape::k32x8x16
                                                : MatrixShape::k8x32x16;

// Half operands have 16 elements a lane in every shape: the first `rows` / 2 count, the others are copies.
// bfloat16 operands have no copies.
template <class T>
constexpr int operand_elements(int rows) {
  return std::is_same_v<T, __half> ? 16 : rows / 2;
}

}  // namespace attn_diag::host

namespace nvcuda::wmma {

struct row_major;
struct col_major;
struct matrix_a;
struct matrix_b;
struct accumulator;

enum layout_t { mem_row_major, mem_col_major };

template <class Use, int m, int n, int k, class T, class Layout = void>
class fragment;  // of other sizes or types: not on the host executor

template <int m, int n, int k, class T, class Layout>
requires attn_diag::host::MatrixSizes<m, n, k> &&
    (std::same_as<T, __half> || std::same_as<T, __nv_bfloat16>)&&(
        std::same_as<Layout, row_major> ||
        std::same_as<Layout, col_major>)class fragment<matrix_a, m, n, k, T, Layout>
    : public attn_diag::host::FragmentBase<T, attn_diag::host::operand_elements<T>(m)> {
};

template <int m, int n, int k, class T, class Layout>
requires attn_diag::host::MatrixSizes<m, n, k> &&
    (std::same_as<T, __half> || std::same_as<T, __nv_bfloat16>)&&(
        std::same_as<Layout, row_major> ||
        std::same_as<Layout, col_major>)class fragment<matrix_b, m, n, k, T, Layout>
    : public attn_diag::host::FragmentBase<T, attn_diag::host::operand_elements<T>(n)> {
};

template <int m, int n, int k, class T>
requires attn_diag::host::MatrixSizes<m, n, k> &&
    (std::same_as<T, __half> || std::same_as<T, float>)class fragment<accumulator, m, n, k, T, void>
    : public attn_diag::host::FragmentBase<T, 8> {
};

}  // namespace nvcuda::wmma

namespace attn_diag::host {

template <class Use>
constexpr MatrixUse kMatrixUse =
    std::is_same_v<Use, nvcuda::wmma::matrix_a>   ? MatrixUse::kA
    : std::is_same_v<Use, nvcuda::wmma::matrix_b> ? MatrixUse::kB
                                                  : MatrixUse::kAccumulator;

template <class Use, int m, int n, int k, class T, class Layout>
Fragment described(nvcuda::wmma::fragment<Use, m, n, k, T, Layout>& f) {
  return {{kMatrixUse<Use>, kMatrixShape<m>, kMatrixType<T>}, f.x.begin(), &f.x_set};
}
template <class Use, int m, int n, int k, class T, class Layout>
ConstFragment described(const nvcuda::wmma::fragment<Use, m, n, k, T, Layout>& f) {
  return {{kMatrixUse<Use>, kMatrixShape<m>, kMatrixType<T>}, f.x.begin(), &f.x_set};
}

}  // namespace attn_diag::host

namespace nvcuda::wmma {

#define ATTN_DIAG_HOST_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

template <class Use, int m, int n, int k, class T, class Layout>
inline void fill_fragment(fragment<Use, m, n, k, T, Layout>& f,
                          const std::type_identity_t<T>& value) {
  for (T& element : f.x) element = value;
  f.x_set = true;
}

template <class Use, int m, int n, int k, class T, class Layout>
requires(!std::same_as<Use, accumulator>) inline void load_matrix_sync(
    fragment<Use, m, n, k, T, Layout>& f, const std::type_identity_t<T>* p, unsigned ldm,
    ATTN_DIAG_HOST_SITE) {
  attn_diag::host::matrix_load(attn_diag::host::described(f), p, ldm,
                               std::same_as<Layout, col_major>, file, line);
}

template <int m, int n, int k, class T>
inline void load_matrix_sync(fragment<accumulator, m, n, k, T>& f, const std::type_identity_t<T>* p,
                             unsigned ldm, layout_t layout, ATTN_DIAG_HOST_SITE) {
  attn_diag::host::matrix_load(attn_diag::host::described(f), p, ldm, layout == mem_col_major, file,
                               line);
}

template <int m, int n, int k, class T>
inline void store_matrix_sync(std::type_identity_t<T>* p,
                              const fragment<accumulator, m, n, k, T>& f, unsigned ldm,
                              layout_t layout, ATTN_DIAG_HOST_SITE) {
  attn_diag::host::matrix_store(p, attn_diag::host::described(f), ldm, layout == mem_col_major,
                                file, line);
}

// Accumulators of half inputs may be half or float, each; those of bfloat16 inputs are float.
template <int m, int n, int k, class T, class LayoutA, class LayoutB, class TD, class TC>
requires(std::same_as<T, __half> ||
         (std::same_as<TD, float> &&
          std::same_as<
              TC, float>)) inline void mma_sync(fragment<accumulator, m, n, k, TD>& d,
                                                const fragment<matrix_a, m, n, k, T, LayoutA>& a,
                                                const fragment<matrix_b, m, n, k, T, LayoutB>& b,
                                                const fragment<accumulator, m, n, k, TC>& c,
                                                ATTN_DIAG_HOST_SITE) {
  using attn_diag::host::described;
  attn_diag::host::matrix_multiply(described(d), described(a), described(b), described(c), file,
                                   line);
}

#undef ATTN_DIAG_HOST_SITE

}  // namespace nvcuda::wmma
