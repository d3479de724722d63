#include "harness/host/check/shadow.h"

#include <algorithm>
#include <bit>

namespace attn_diag::host {

void ShadowPage::refine(std::uint32_t bits) {
  constexpr unsigned kCoarsest = 4;  // 16 bytes, the largest access
  const unsigned needed = std::min(static_cast<unsigned>(std::countr_zero(bits)), kCoarsest);
  if (x_records != nullptr && needed >= x_shift) return;
  auto records = std::make_unique<Record[]>(kPageBytes >> needed);
  if (x_records != nullptr) {
    const unsigned copies = x_shift - needed;
    for (std::size_t i = 0; i < kPageBytes >> needed; ++i) records[i] = x_records[i >> copies];
  } else if (initialised) {
    for (std::size_t i = 0; i < kPageBytes >> needed; ++i) records[i].writer.epoch = kHostEpoch;
  }
  if (shared) {
    auto readers = std::make_unique<WarpReaders[]>(kPageBytes >> needed);
    if (x_readers != nullptr)
      for (std::size_t i = 0; i < kPageBytes >> needed; ++i)
        readers[i] = x_readers[i >> (x_shift - needed)];
    x_readers = std::move(readers);
  }
  x_records = std::move(records);
  x_shift = needed;
}

void FlatShadow::cover(std::uintptr_t begin, std::size_t bytes) {
  if (begin == x_begin && bytes == x_bytes) return;
  x_begin = begin;
  x_bytes = bytes;
  x_first = begin >> kPageShift;
  x_pages.clear();
  x_pages.resize(bytes == 0 ? 0 : ((begin + bytes - 1) >> kPageShift) - x_first + 1);
  for (ShadowPage& page : x_pages) page.shared = true;
}

void FlatShadow::allow(std::uintptr_t begin, std::size_t bytes) {
  for_each_page(*this, begin, bytes, [](ShadowPage& page, std::uint32_t offset, std::uint32_t n) {
    page.mixed = page.mixed || page.end != 0;
    page.begin = page.end != 0 ? std::min(page.begin, offset) : offset;
    page.end = std::max(page.end, offset + n);
  });
}

ShadowPage* SparseShadow::find(std::uintptr_t number) {
  std::unique_ptr<ShadowPage>& page = x_pages[number];
  if (page == nullptr) page = std::make_unique<ShadowPage>();
  return page.get();
}

}  // namespace attn_diag::host
