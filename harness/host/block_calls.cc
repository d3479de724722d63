// What kernels call through the stand-in headers, and which part of the running block does it. `pc` is the
// address in the kernel from which that happened, `frame` tells the depth of the call.
#include "attn_diag_host/async_copy.h"
#include "attn_diag_host/give_way.h"
#include "attn_diag_host/mbarrier.h"
#include "attn_diag_host/named_barrier.h"
#include "attn_diag_host/shared_address.h"
#include "attn_diag_host/static_shared.h"
#include "attn_diag_host/synchronize.h"
#include "attn_diag_host/warp_matrix.h"
#include "harness/host/block_runner.h"
#include "harness/host/mbarrier_word.h"
#include "harness/host/values/recorder.h"

#define ATTN_DIAG_HOST_PLACE_PC \
  address(__builtin_return_address(0)), address(__builtin_frame_address(0))
#define ATTN_DIAG_HOST_PC address(__builtin_return_address(0))
#define ATTN_DIAG_HOST_PLACE file, line, ATTN_DIAG_HOST_PLACE_PC

namespace attn_diag::host {

void block_barrier(const char* file, int line) {
  BlockRunner& block = *BlockRunner::current();
  block.barriers().barrier(block, ATTN_DIAG_HOST_PLACE);
}

BarrierVotes block_barrier_vote(int predicate, const char* file, int line) {
  return BlockRunner::current()->barriers().barrier_vote(predicate, ATTN_DIAG_HOST_PLACE);
}

std::uint64_t warp_collective(WarpCall call, unsigned mask, std::uint64_t value, const char* file,
                              int line) {
  BlockRunner& block = *BlockRunner::current();
  const std::uint64_t result =
      block.collectives().collective(block, call, mask, value, ATTN_DIAG_HOST_PLACE);
  if (block.check() != nullptr) [[unlikely]]
    block.collectives().check_source(address(__builtin_return_address(0)));
  return result;
}

unsigned active_mask() {
  return BlockRunner::current()->collectives().active_mask(ATTN_DIAG_HOST_PLACE_PC);
}

void named_barrier_sync(unsigned id, unsigned threads, const char* file, int line) {
  BlockRunner::current()->barriers().named_barrier(id, threads, true, ATTN_DIAG_HOST_PLACE);
}

void named_barrier_arrive(unsigned id, unsigned threads, const char* file, int line) {
  BlockRunner::current()->barriers().named_barrier(id, threads, false, ATTN_DIAG_HOST_PLACE);
}

void give_way(const char* file, int line) {
  if (BlockRunner* runner = BlockRunner::current()) runner->poll(Wait::kSpin, ATTN_DIAG_HOST_PLACE);
}

void changed_nothing() {
  if (BlockRunner* runner = BlockRunner::current())
    runner->count_idle_atomic(ATTN_DIAG_HOST_PLACE_PC);
}

std::uint32_t shared_address(const void* generic, const char* file, int line) {
  return BlockRunner::current()->memory().shared_address(generic, file, line);
}

void* shared_pointer(std::uint32_t address, const char* file, int line) {
  return BlockRunner::current()->memory().shared_pointer(address, file, line);
}

bool is_shared(const void* generic) {
  const BlockRunner* runner = BlockRunner::current();
  return runner != nullptr && runner->memory().is_shared(address(generic));
}

bool is_local(const void* generic) {
  const BlockRunner* runner = BlockRunner::current();
  return runner != nullptr && runner->is_own(address(generic));
}

void* dynamic_shared_memory() { return BlockRunner::current()->memory().dynamic().data(); }

void matrix_load(const Fragment& to, const void* memory, unsigned stride, bool column_major,
                 const char* file, int line) {
  BlockRunner::current()->matrices().load_fragment(to, memory, stride, column_major,
                                                   ATTN_DIAG_HOST_PLACE);
}

void matrix_store(void* memory, const ConstFragment& from, unsigned stride, bool column_major,
                  const char* file, int line) {
  BlockRunner::current()->matrices().store_fragment(memory, from, stride, column_major,
                                                    ATTN_DIAG_HOST_PLACE);
}

void matrix_multiply(const Fragment& d, const ConstFragment& a, const ConstFragment& b,
                     const ConstFragment& c, const char* file, int line) {
  BlockRunner::current()->matrices().multiply_fragments({nullptr, 0, false, d, a, b, c},
                                                        ATTN_DIAG_HOST_PLACE);
}

void fragment_index_out_of_range(long long index, int elements, const char* file, int line) {
  BlockRunner::current()->matrices().report_fragment_index(index, elements, file, line);
}

void ldmatrix(std::uint32_t* out, int count, bool transposed, const void* row, const char* file,
              int line) {
  BlockRunner::current()->matrices().load_registers(out, count, transposed, row,
                                                    ATTN_DIAG_HOST_PLACE);
}

void stmatrix(void* row, const std::uint32_t* in, int count, bool transposed, const char* file,
              int line) {
  BlockRunner::current()->matrices().store_registers(row, in, count, transposed,
                                                     ATTN_DIAG_HOST_PLACE);
}

void mma_sync(MmaKind kind, std::uint32_t* d, const std::uint32_t* a, const std::uint32_t* b,
              const std::uint32_t* c, const char* file, int line) {
  BlockRunner::current()->matrices().multiply_registers(kind, d, a, b, c, ATTN_DIAG_HOST_PLACE);
}

void async_copy(void* to, const void* from, std::size_t bytes, std::size_t zeros,
                const void* barrier, const char* file, int line, bool around_l1) {
  BlockRunner::current()->copies().copy(
      {static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes, zeros, file, line,
       around_l1, copied_at()},
      barrier, ATTN_DIAG_HOST_PLACE_PC);
}

void async_commit() { BlockRunner::current()->copies().commit(); }

void async_wait(std::size_t prior) {
  BlockRunner::current()->copies().wait(prior, ATTN_DIAG_HOST_PLACE_PC);
}

void barrier_init(BlockBarrier* barrier, std::int32_t expected, const char* file, int line) {
  BlockRunner::current()->copies().barrier_init(barrier, expected, file, line, ATTN_DIAG_HOST_PC);
}

std::uint32_t barrier_arrive(BlockBarrier* barrier, std::int32_t count, bool drop, const char* file,
                             int line) {
  return BlockRunner::current()->copies().barrier_arrive(barrier, count, drop,
                                                         ATTN_DIAG_HOST_PLACE);
}

void barrier_wait(const BlockBarrier* barrier, std::uint32_t phase, const char* file, int line) {
  BlockRunner::current()->copies().barrier_wait(barrier, phase, ATTN_DIAG_HOST_PLACE);
}

void mbarrier_init(std::uint64_t* barrier, unsigned count, const char* file, int line) {
  BlockRunner::current()->mbarriers().init(barrier, count, file, line, ATTN_DIAG_HOST_PC);
}

void mbarrier_inval(std::uint64_t* barrier, const char* file, int line) {
  BlockRunner::current()->mbarriers().inval(barrier, file, line, ATTN_DIAG_HOST_PC);
}

std::uint64_t mbarrier_arrive(std::uint64_t* barrier, unsigned count, const char* file, int line) {
  return BlockRunner::current()->mbarriers().change(barrier, {count, false, 0},
                                                    ATTN_DIAG_HOST_PLACE);
}

std::uint64_t mbarrier_arrive_drop(std::uint64_t* barrier, unsigned count, const char* file,
                                   int line) {
  return BlockRunner::current()->mbarriers().change(barrier, {count, true, 0},
                                                    ATTN_DIAG_HOST_PLACE);
}

std::uint64_t mbarrier_arrive_expect_tx(std::uint64_t* barrier, unsigned bytes, const char* file,
                                        int line) {
  return BlockRunner::current()->mbarriers().change(barrier, {1, false, std::int64_t{bytes}},
                                                    ATTN_DIAG_HOST_PLACE);
}

void mbarrier_expect_tx(std::uint64_t* barrier, unsigned bytes, const char* file, int line) {
  BlockRunner::current()->mbarriers().change(barrier, {0, false, std::int64_t{bytes}},
                                             ATTN_DIAG_HOST_PLACE);
}

void mbarrier_complete_tx(std::uint64_t* barrier, unsigned bytes, const char* file, int line) {
  BlockRunner::current()->mbarriers().change(barrier, {0, false, -std::int64_t{bytes}},
                                             ATTN_DIAG_HOST_PLACE);
}

bool mbarrier_test_wait_parity(std::uint64_t* barrier, unsigned parity, const char* file,
                               int line) {
  return BlockRunner::current()->mbarriers().test_wait(barrier, (parity & 1u) != 0,
                                                       ATTN_DIAG_HOST_PLACE);
}

bool mbarrier_test_wait(std::uint64_t* barrier, std::uint64_t state, const char* file, int line) {
  return BlockRunner::current()->mbarriers().test_wait(barrier, MbarrierWord::unpack(state).phase,
                                                       ATTN_DIAG_HOST_PLACE);
}

unsigned mbarrier_pending_count(std::uint64_t state) { return MbarrierWord::unpack(state).pending; }

void cp_async_mbarrier_arrive(std::uint64_t* barrier, bool noinc, const char* file, int line) {
  BlockRunner::current()->mbarriers().arrive_after_copies(barrier, noinc, file, line,
                                                          ATTN_DIAG_HOST_PC);
}

}  // namespace attn_diag::host
