// Records for memory, in pages whose granule is the finest access seen there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "harness/host/check/record.h"

namespace attn_diag::host {

inline constexpr unsigned kPageShift = 10;
inline constexpr std::uintptr_t kPageBytes = std::uintptr_t{1} << kPageShift;

class ShadowPage {
 public:
  // Byte offsets within the page that belong to an array; none at first.
  std::uint32_t begin = 0, end = 0;
  bool initialised = false;  // by the host, when it was registered
  bool ignored = false;      // memory that is not the kernel's: not watched
  bool mixed = false;        // [begin, end) does not tell all: ask the list of arrays
  bool shared = false;       // shared memory
  bool input = false;        // not to be written
  bool wide = false;         // holds loads of whole loops that the records do not have yet

  unsigned shift() const { return x_shift; }
  Record* at(std::uint32_t offset) { return x_records.get() + (offset >> x_shift); }
  // Pages of shared memory have these too, once they have records.
  WarpReaders* readers_at(std::uint32_t offset) { return x_readers.get() + (offset >> x_shift); }
  // To be called before at(): makes records fine enough for an access.
  void fit(std::uint32_t offset, std::uint32_t bytes) {
    if (((offset | bytes) & ((1u << x_shift) - 1)) != 0) [[unlikely]]
      refine(offset | bytes);
  }
  bool touched() const { return x_records != nullptr; }
  void forget() {
    x_records.reset();
    x_readers.reset();
    x_shift = 31;
  }

 private:
  void refine(std::uint32_t bits);

  unsigned x_shift = 31;  // log2 of the granule; too coarse for any access: no records yet
  std::unique_ptr<Record[]> x_records;
  std::unique_ptr<WarpReaders[]> x_readers;
};

// Pages of one stretch of shared memory.
class FlatShadow {
 public:
  void cover(std::uintptr_t begin, std::size_t bytes);
  bool contains(std::uintptr_t at) const { return at - x_begin < x_bytes; }
  ShadowPage& page(std::uintptr_t at) { return x_pages[(at >> kPageShift) - x_first]; }
  std::uintptr_t begin() const { return x_begin; }
  std::size_t bytes() const { return x_bytes; }
  void allow(std::uintptr_t begin, std::size_t bytes);  // an array

 private:
  std::uintptr_t x_begin = 0, x_first = 0;
  std::size_t x_bytes = 0;
  std::vector<ShadowPage> x_pages;
};

// Pages anywhere. Addresses of pages do not change.
class SparseShadow {
 public:
  ShadowPage& page(std::uintptr_t at) {
    const std::uintptr_t number = at >> kPageShift;
    Slot& slot = x_cache[number % kCached];
    if (slot.page == nullptr || slot.number != number) [[unlikely]]
      slot = {number, find(number)};
    return *slot.page;
  }

 private:
  static constexpr std::size_t kCached = 4096;
  struct Slot {
    std::uintptr_t number = 0;
    ShadowPage* page = nullptr;
  };
  ShadowPage* find(std::uintptr_t number);

  std::vector<Slot> x_cache = std::vector<Slot>(kCached);
  std::unordered_map<std::uintptr_t, std::unique_ptr<ShadowPage>> x_pages;
};

// Calls act(page, offset, bytes) for the part of an access in each page.
template <class Shadow, class Act>
void for_each_page(Shadow& shadow, std::uintptr_t at, std::size_t bytes, const Act& act) {
  while (bytes > 0) {
    const auto offset = static_cast<std::uint32_t>(at & (kPageBytes - 1));
    const std::size_t here = bytes < kPageBytes - offset ? bytes : kPageBytes - offset;
    act(shadow.page(at), offset, static_cast<std::uint32_t>(here));
    at += here;
    bytes -= here;
  }
}

}  // namespace attn_diag::host
