// A view of consecutive values, and the sizes that tensors are made with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <ostream>
#include <vector>

namespace c10 {

template <class T>
class ArrayRef {
 public:
  ArrayRef() = default;
  ArrayRef(const T* data, std::size_t size) : x_data(data), x_size(size) {}
  ArrayRef(const std::vector<T>& values) : x_data(values.data()), x_size(values.size()) {}
  // Valid until the end of the full expression, as any view of an initializer list.
  ArrayRef(const std::initializer_list<T>& values)
      : x_data(std::data(values)), x_size(values.size()) {}

  const T* begin() const { return x_data; }
  const T* end() const { return x_data + x_size; }
  const T* data() const { return x_data; }
  std::size_t size() const { return x_size; }
  bool empty() const { return x_size == 0; }
  const T& operator[](std::size_t i) const { return x_data[i]; }
  const T& front() const { return x_data[0]; }
  const T& back() const { return x_data[x_size - 1]; }
  std::vector<T> vec() const { return std::vector<T>(begin(), end()); }
  bool equals(ArrayRef other) const { return *this == other; }
  friend bool operator==(ArrayRef a, ArrayRef b) {
    if (a.x_size != b.x_size) return false;
    for (std::size_t i = 0; i < a.x_size; ++i)
      if (!(a[i] == b[i])) return false;
    return true;
  }
  friend bool operator!=(ArrayRef a, ArrayRef b) { return !(a == b); }
  friend std::ostream& operator<<(std::ostream& to, ArrayRef values) {
    to << '[';
    for (std::size_t i = 0; i < values.x_size; ++i) to << (i == 0 ? "" : ", ") << values[i];
    return to << ']';
  }

 private:
  const T* x_data = nullptr;
  std::size_t x_size = 0;
};
using IntArrayRef = ArrayRef<std::int64_t>;

}  // namespace c10
