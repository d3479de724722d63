// What code compiled with -fsanitize=signed-integer-overflow,array-bounds calls. The compiler's own runtime
// has these too; it keeps them where the whole program is built with it, and then prints what it finds.
#include <algorithm>

#include "harness/host/block_runner.h"

#if !defined(ATTN_DIAG_HOST_ASAN)

namespace {

struct SourceLocation {
  const char* file;
  std::uint32_t line, column;
};
struct TypeDescriptor {
  std::uint16_t kind;  // 0: an integer
  std::uint16_t info;  // of an integer: log2 of its bits, times 2, plus 1 if it is signed
  char name[1];
};
struct OverflowData {
  SourceLocation place;
  const TypeDescriptor* type;
};
struct BoundsData {
  SourceLocation place;
  const TypeDescriptor* array;
  const TypeDescriptor* index;
};
using attn_diag::host::BlockRunner;

void overflow(const OverflowData* data, const char* sign, std::uintptr_t left, std::uintptr_t right,
              const void* pc) {
  BlockRunner* const runner = BlockRunner::current();
  if (runner == nullptr) return;
  const unsigned bits = 1u << (data->type->info >> 1);
  if (bits > 64) return;  // passed by reference; no index has as many
  const auto widened = [bits](std::uintptr_t value) {
    const unsigned unused = 64 - bits;
    return static_cast<std::int64_t>(std::uint64_t{value} << unused) >> unused;
  };
  runner->note_overflow(widened(left), sign, widened(right), data->type->name, pc);
}

}  // namespace

extern "C" {
void __ubsan_handle_add_overflow(OverflowData*, std::uintptr_t, std::uintptr_t);
void __ubsan_handle_sub_overflow(OverflowData*, std::uintptr_t, std::uintptr_t);
void __ubsan_handle_mul_overflow(OverflowData*, std::uintptr_t, std::uintptr_t);
void __ubsan_handle_negate_overflow(OverflowData*, std::uintptr_t);
void __ubsan_handle_divrem_overflow(OverflowData*, std::uintptr_t, std::uintptr_t);
void __ubsan_handle_out_of_bounds(BoundsData*, std::uintptr_t);

void __ubsan_handle_add_overflow(OverflowData* data, std::uintptr_t left, std::uintptr_t right) {
  overflow(data, "+", left, right, __builtin_return_address(0));
}
void __ubsan_handle_sub_overflow(OverflowData* data, std::uintptr_t left, std::uintptr_t right) {
  overflow(data, "-", left, right, __builtin_return_address(0));
}
void __ubsan_handle_mul_overflow(OverflowData* data, std::uintptr_t left, std::uintptr_t right) {
  overflow(data, "*", left, right, __builtin_return_address(0));
}
void __ubsan_handle_negate_overflow(OverflowData* data, std::uintptr_t value) {
  overflow(data, "-", 0, value, __builtin_return_address(0));
}
void __ubsan_handle_divrem_overflow(OverflowData* data, std::uintptr_t left, std::uintptr_t right) {
  overflow(data, "/", left, right, __builtin_return_address(0));
}
void __ubsan_handle_out_of_bounds(BoundsData* data, std::uintptr_t index) {
  BlockRunner* const runner = BlockRunner::current();
  if (runner == nullptr) return;
  const unsigned unused = 64 - std::min(64u, 1u << (data->index->info >> 1));
  const auto value = static_cast<std::int64_t>(std::uint64_t{index} << unused) >> unused;
  runner->note_index(value, data->array->name, __builtin_return_address(0));
}
}  // extern "C"

#endif
