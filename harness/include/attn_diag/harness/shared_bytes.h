// The bytes of q, k or v: one piece of memory for a case, and for whatever was recorded of it.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace attn_diag {

// Read as a vector is. A copy shares the memory; edit() gives the vector to whoever writes, and only then copies what
// others hold too.
class SharedBytes {
 public:
  SharedBytes() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): q, k and v are made as vectors.
  SharedBytes(std::vector<std::byte> bytes)
      : x_bytes(std::make_shared<std::vector<std::byte>>(std::move(bytes))) {}
  // Nothing is gained by a move, which would leave no vector behind.
  SharedBytes(const SharedBytes&) = default;
  SharedBytes& operator=(const SharedBytes&) = default;

  // NOLINTNEXTLINE(google-explicit-constructor): for functions that read a vector.
  operator const std::vector<std::byte>&() const { return *x_bytes; }
  const std::byte* data() const { return x_bytes->data(); }
  std::size_t size() const { return x_bytes->size(); }
  bool empty() const { return x_bytes->empty(); }
  auto begin() const { return x_bytes->cbegin(); }
  auto end() const { return x_bytes->cend(); }
  std::byte operator[](std::size_t i) const { return (*x_bytes)[i]; }

  std::vector<std::byte>& edit() {
    if (x_bytes.use_count() > 1) x_bytes = std::make_shared<std::vector<std::byte>>(*x_bytes);
    return *x_bytes;
  }

  friend bool operator==(const SharedBytes& a, const SharedBytes& b) {
    return a.x_bytes == b.x_bytes || *a.x_bytes == *b.x_bytes;
  }

 private:
  std::shared_ptr<std::vector<std::byte>> x_bytes = std::make_shared<std::vector<std::byte>>();
};

}  // namespace attn_diag
