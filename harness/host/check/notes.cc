#include "harness/host/check/notes.h"

#include "attn_diag_host/check_hooks.h"
#include "harness/host/block_runner.h"
#include "harness/host/launch_scope.h"

namespace attn_diag::host {
namespace {

Checker* checker_in_force() {
  ScopeState* const scope = current_scope();
  return scope == nullptr ? nullptr : scope->checker.get();
}

std::uintptr_t address_of(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

}  // namespace

void note_allocated(const void* memory, std::size_t bytes, const char* what, bool initialised) {
  if (Checker* const checker = checker_in_force())
    checker->register_allocation(address_of(memory), bytes, what, initialised);
}

void note_freed(const void* memory) {
  if (Checker* const checker = checker_in_force()) checker->mark_freed(address_of(memory));
}

void note_host_wrote(const void* memory, std::size_t bytes) {
  if (Checker* const checker = checker_in_force())
    checker->mark_initialised(address_of(memory), bytes);
}

void note_landed(const AsyncCopy& copy, bool waited) {
  if (BlockRunner* runner = BlockRunner::current()) runner->note_landed(copy, waited);
}

void note_atomic(const void* memory, std::size_t bytes, bool reads, const void* pc) {
  if (BlockRunner* runner = BlockRunner::current()) runner->note_atomic(memory, bytes, reads, pc);
}

void note_fence(bool device) {
  if (BlockRunner* runner = BlockRunner::current()) runner->note_fence(device);
}

void shared_pointer(const char* name, const volatile void* pointer) {
  if (BlockRunner* runner = BlockRunner::current()) runner->note_shared_pointer(name, pointer);
}

void local_array(const void* array, std::size_t bytes, const char* name, const char*, int) {
  if (BlockRunner* runner = BlockRunner::current()) runner->note_local_array(array, bytes, name);
}

}  // namespace attn_diag::host
