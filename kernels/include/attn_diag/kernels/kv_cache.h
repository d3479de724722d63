// For kernels that read K and V from a cache: in pages that a table lists, or with K in chunks of the head
// dimension, as vLLM's (Kwon et al., "Efficient Memory Management for Large Language Model Serving with
// PagedAttention", 2023) and FasterTransformer's do.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "attn_diag/kernels/call.h"
#include "attn_diag/kernels/coded_inputs.h"
#include "attn_diag/kernels/device_buffer.h"

namespace attn_diag {

// Axes of a cache, outermost first; D is head_dim of K, head_dim_v of V.
enum class CacheOrder {
  kTokensHeads,  // [pages][tokens][kv_heads][D]
  kHeadsTokens,  // [pages][kv_heads][tokens][D]
  kHeadsDims,    // [pages][kv_heads][D][tokens]
  kChunks,       // [pages][kv_heads][D / chunk][tokens][chunk]
};

struct CacheShape {
  int page = 0;  // tokens of a page; 0: all that a batch has, and batches in order
  CacheOrder k = CacheOrder::kHeadsTokens, v = CacheOrder::kHeadsTokens;
  int chunk = 8;  // elements, of kChunks
};

// K and V of a call in such an order. Pages are listed from the last to the first, so that a wrong index into
// the table shows; what no token fills holds 3.
template <class T>
class KvCache {
 public:
  KvCache(const Call& c, CacheShape shape) : KvCache(c, shape, c.k<T>(), c.v<T>()) {}
  // Of codes, T is their type: `KvCache<int8_t> cache(c, {16}, k, v)` of coded_k(c) and coded_v(c), which live as long.
  KvCache(const Call& c, CacheShape shape, CodedInput& k, CodedInput& v)
      : KvCache(c, shape, k.codes<T>(), v.codes<T>()) {
    keep_scales(c, 1, k, shape.k, x_k_scales);
    keep_scales(c, 2, v, shape.v, x_v_scales);
  }

  T* k() const { return x_k.data(); }
  T* v() const { return x_v.data(); }
  // Of codes. With ScalePer::kToken in pages, as the cache is, [pages][tokens][kv_heads] of kTokensHeads, else
  // [pages][kv_heads][tokens]; else as CodedInput::scales() has them.
  float* k_scales() const { return x_k_scales.data; }
  float* v_scales() const { return x_v_scales.data; }
  // [batch][pages_per_batch()]: which page holds the tokens.
  std::int32_t* table() const { return x_table.data(); }
  int pages_per_batch() const { return x_pages; }
  int pages() const { return static_cast<int>(x_count); }

 private:
  struct Scales {
    std::unique_ptr<DeviceBuffer<float>> own;
    float* data = nullptr;
  };

  KvCache(const Call& c, CacheShape shape, const T* k, const T* v)
      : x_shape(shape),
        x_tokens(shape.page == 0 ? c.seqlen_k() : shape.page),
        x_pages((c.seqlen_k() + x_tokens - 1) / x_tokens),
        x_count(static_cast<std::size_t>(x_pages) * static_cast<std::size_t>(c.batch())),
        x_k(elements(c, c.head_dim())),
        x_v(elements(c, c.head_dim_v())),
        x_table(table_of_pages()) {
    fill(c, k, c.k_strides(), c.head_dim(), shape.k, x_k);
    fill(c, v, c.v_strides(), c.head_dim_v(), shape.v, x_v);
  }

  void keep_scales(const Call& c, int input, CodedInput& of, CacheOrder order, Scales& to) const {
    to.data = of.scales();
    if (c.codes(input).per != ScalePer::kToken) return;
    to.own = std::make_unique<DeviceBuffer<float>>(elements(c, 1));
    fill(c, to.data, dense_strides(c.problem().layout, c.kv_heads(), c.seqlen_k(), 1), 1,
         order == CacheOrder::kTokensHeads ? order : CacheOrder::kHeadsTokens, *to.own);
    to.data = to.own->data();
  }

  // The page that the i-th entry of the table names.
  std::size_t page_at(std::size_t i) const { return x_shape.page == 0 ? i : x_count - 1 - i; }

  std::vector<std::int32_t> table_of_pages() const {
    std::vector<std::int32_t> table(x_count);
    for (std::size_t i = 0; i < x_count; ++i) table[i] = static_cast<std::int32_t>(page_at(i));
    return table;
  }

  std::size_t elements(const Call& c, int dim) const {
    return x_count * static_cast<std::size_t>(x_tokens) * static_cast<std::size_t>(c.kv_heads()) *
           static_cast<std::size_t>(dim);
  }

  // By copies of the device alone, so that a trace can tell where what is in the cache comes from.
  template <class E>
  void fill(const Call& c, const E* from, Strides strides, int dim, CacheOrder order,
            const DeviceBuffer<E>& to) const {
    const std::size_t tokens = static_cast<std::size_t>(x_tokens),
                      heads = static_cast<std::size_t>(c.kv_heads()),
                      keys = static_cast<std::size_t>(c.seqlen_k()),
                      d = static_cast<std::size_t>(dim);
    // Elements of a token that lie together.
    const std::size_t part = order == CacheOrder::kChunks ? static_cast<std::size_t>(x_shape.chunk)
                             : order == CacheOrder::kHeadsDims ? 1
                                                               : d;
    if (d % part != 0) c.refuse("its cache has K in chunks, of which head_dim must be a multiple");
    to.fill(E(3.0f));
    const std::size_t next = order == CacheOrder::kTokensHeads ? heads * d : part;  // token
    for (std::size_t i = 0; i < x_count; ++i) {
      const std::size_t pages = static_cast<std::size_t>(x_pages);
      const std::size_t first = i % pages * tokens, page = page_at(i);
      for (std::size_t h = 0; h < heads; ++h) {
        const E* const head = from + i / pages * static_cast<std::size_t>(strides.batch) +
                              h * static_cast<std::size_t>(strides.head) +
                              first * static_cast<std::size_t>(strides.seq);
        for (std::size_t at = 0; at < d; at += part) {
          const std::size_t begin = order == CacheOrder::kTokensHeads
                                        ? page * tokens * heads * d + h * d
                                        : (page * heads + h) * tokens * d + at * tokens;
          check_cuda(
              cudaMemcpy2D(to.data() + begin, next * sizeof(E), head + at,
                           static_cast<std::size_t>(strides.seq) * sizeof(E), part * sizeof(E),
                           std::min(tokens, keys - first), cudaMemcpyDeviceToDevice),
              "fill the cache");
        }
      }
    }
    // What launches on another stream does not wait for copies.
    check_cuda(cudaDeviceSynchronize(), "fill the cache");
  }

  CacheShape x_shape;
  int x_tokens, x_pages;  // of a page; of a batch
  std::size_t x_count;
  DeviceBuffer<T> x_k, x_v;
  DeviceBuffer<std::int32_t> x_table;
  Scales x_k_scales, x_v_scales;
};

}  // namespace attn_diag
