#include "harness/host/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <new>

// Valgrind takes a switch to a stack that it does not know for a huge frame. A few instructions, which do
// nothing elsewhere.
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#else
#define VALGRIND_STACK_REGISTER(start, end) 0u
#endif

namespace attn_diag::host {
namespace {

constexpr int kStacksPerSlab = 32;

}  // namespace

FiberStacks::~FiberStacks() {
  while (x_slabs != nullptr) {
    Slab* slab = x_slabs;
    x_slabs = slab->next;
    munmap(slab->memory, slab->bytes);
    delete slab;
  }
}

FiberStack FiberStacks::allocate() {
  const auto guard = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t stride = kBytes + guard;
  if (x_left == 0) {
    const std::size_t bytes = stride * kStacksPerSlab;
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    x_slabs = new Slab{memory, bytes, x_slabs};
    x_free = static_cast<std::byte*>(memory);
    x_left = kStacksPerSlab;
  }
  // Best effort: a process may hold only so many mappings (vm.max_map_count).
  mprotect(x_free, guard, PROT_NONE);
  // All stacks lie at the same offset in a page, and their hot frames would share the same few sets
  // of the first-level cache; colouring spreads the tops over the page, by more than a usual frame.
  const std::size_t colour = static_cast<std::size_t>(x_colour++) * 576 % 4096;
  FiberStack stack;
  stack.bottom = reinterpret_cast<std::uintptr_t>(x_free) + guard;
  stack.top = stack.bottom + kBytes - colour;
  static_cast<void>(VALGRIND_STACK_REGISTER(stack.bottom, stack.bottom + kBytes));
  x_free += stride;
  --x_left;
  return stack;
}

}  // namespace attn_diag::host
