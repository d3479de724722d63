// What a watch build calls as it computes (attn_diag/harness/host/value_callouts.h).
#include <algorithm>
#include <initializer_list>

#include "attn_diag_host/note_rounded.h"
#include "attn_diag_host/shared_address.h"
#include "attn_diag_host/warp.h"
#include "harness/host/block_runner.h"
#include "harness/host/launch_scope.h"
#include "harness/host/values/recorder.h"

namespace attn_diag::host {

void BlockRunner::begin_values(std::uint64_t number) {
  x_watches_values = x_values->begin_block(number);
  x_values_block = x_values->block_number(number);
  if (!x_watches_values) return;
  x_values->forget(x_memory.dynamic().data(), x_plan->config.dynamicSmemBytes);
  if (x_memory.static_shared() != nullptr)
    x_values->forget(x_memory.static_shared(), x_plan->statics.bytes());
}

ValueRecorder* watching_values() {
  if (const BlockRunner* const runner = BlockRunner::current())
    return runner->watches_values() ? runner->values() : nullptr;
  const ScopeState* const scope = current_scope();
  return scope == nullptr ? nullptr : scope->options.values.get();
}

bool follows_values() {
  const BlockRunner* const runner = BlockRunner::current();
  return runner != nullptr ? runner->values() != nullptr : watching_values() != nullptr;
}

namespace {

// Which block reads what another wrote, whether or not they are watched; and what others load of the inputs.
void note_global(BlockRunner& runner, value_callouts::Site& site, std::uint32_t where,
                 const void* at, std::size_t bytes, bool is_store) {
  if (runner.values() == nullptr || runner.is_of(where & 1023, address(at)) ||
      runner.memory().is_shared(address(at)))
    return;
  runner.values()->note_global(site, where >> 10, at, static_cast<unsigned>(bytes), is_store);
}

// Which block stores an output is known of all.
void note_output_of_unwatched(const BlockRunner& runner, value_callouts::Site& site,
                              std::uint32_t where, const void* at, std::size_t bytes) {
  if (runner.values() != nullptr && runner.values()->is_output(at))
    runner.values()->note_output(site, where, at, static_cast<unsigned>(bytes), 0);
}

}  // namespace

void note_copied(void* to, const void* from, std::size_t bytes, CopiedAt at) {
  BlockRunner* const runner = BlockRunner::current();
  const bool has_line = runner != nullptr && at.site != nullptr;
  value_callouts::Site* const store = at.store != nullptr ? at.store : at.site;
  if (has_line) note_global(*runner, *at.site, at.where, from, bytes, false);
  if (ValueRecorder* const recorder = watching_values())
    recorder->copy(to, from, bytes, at);
  else if (has_line)
    note_output_of_unwatched(*runner, *store, at.where, to, bytes);
  if (has_line) note_global(*runner, *store, at.where, to, bytes, true);
}

CopiedAt copied_at() {
  const BlockRunner* const runner = BlockRunner::current();
  if (runner == nullptr || runner->values() == nullptr) return {};
  return {runner->values()->stands_at(), runner->place_of_values()};
}

void note_rounded(void* to, unsigned to_bytes, const void* from, unsigned from_bytes) {
  if (ValueRecorder* const recorder = watching_values())
    recorder->store_on_host(to, to_bytes, recorder->load_on_host(from, from_bytes));
}

void note_cleared(void* at, std::size_t bytes) {
  ValueRecorder* const recorder = watching_values();
  if (recorder == nullptr) return;
  recorder->forget(at, bytes);
  if (BlockRunner::current() == nullptr) recorder->forget_writers(at, bytes);
}

}  // namespace attn_diag::host

namespace {

using attn_diag::host::address;
using attn_diag::host::BlockRunner;
using attn_diag::host::Label;
using attn_diag::host::ValueRecorder;
using attn_diag::value_callouts::Site;

// The watched block's recorder, or null; code of the host has one where one of these labels is a number that a block stored.
struct Watched {
  explicit Watched(std::initializer_list<Label> labels = {}) {
    if (runner != nullptr) return;
    ValueRecorder* const scope = attn_diag::host::watching_values();
    for (const Label label : labels)
      if (of == 0 && scope != nullptr && label != 0 && scope->is_on_host(label)) {
        recorder = scope;
        of = label;
      }
  }
  std::uint32_t where() const {
    return runner != nullptr ? runner->place_of_values() : recorder->place_of(of);
  }
  // What is made of the labels.
  template <class Make>
  Label make(const Make& make) const {
    if (recorder == nullptr) return 0;
    if (runner != nullptr) return make();
    return recorder->is_only_of_block(of) ? of : recorder->hand_on(make(), of);
  }

  BlockRunner* runner = BlockRunner::current();
  ValueRecorder* recorder =
      runner != nullptr && runner->watches_values() ? runner->values() : nullptr;
  Label of = 0;  // of those, on the host
};

ValueRecorder* recorder_of_host() {
  return BlockRunner::current() == nullptr ? attn_diag::host::watching_values() : nullptr;
}

}  // namespace

extern "C" {

Label attn_diag_value_load(Site* site, const void* at, std::uint32_t bytes, std::uint64_t bits);
void attn_diag_value_store(Site* site, const void* at, std::uint32_t bytes, Label label,
                           std::uint64_t bits);
Label attn_diag_value_compute(Site* site, float result, Label a, float x, Label b, float y, Label c,
                              float z);
Label attn_diag_value_pick(Site* site, Label chosen, float number, Label other);
Label attn_diag_value_convert(Site* site, Label label, float result, std::uint32_t bytes);
Label attn_diag_value_from_integer(Site* site, Label label, float number, std::uint32_t bytes);
void attn_diag_value_coded(int input, const void* codes, std::uint64_t count);
Label attn_diag_value_resize(Label label, std::uint32_t bytes, std::uint32_t to);
Label attn_diag_value_shift(Label label, std::uint32_t bytes, std::int32_t bits);
Label attn_diag_value_mask(Label label, std::uint32_t bytes, std::uint64_t mask);
Label attn_diag_value_merge(Site* site, Label a, Label b, std::uint32_t bytes);
Label attn_diag_value_join(Label low, Label high, std::uint32_t low_bytes,
                           std::uint32_t high_bytes);
Label attn_diag_value_as_number(Site* site, Label label, std::uint32_t bytes, float number);
void attn_diag_value_add_sites(Site* const* sites, std::uint64_t count);
void attn_diag_value_remove_sites(Site* const* sites, std::uint64_t count);
void attn_diag_value_copy(Site* load, Site* store, void* to, const void* from, std::uint64_t bytes);
void attn_diag_value_forget(void* at, std::uint64_t bytes);
void attn_diag_value_offer(Label label, std::uint64_t bits);
Label attn_diag_value_receive(Site* site, std::uint32_t call, std::uint64_t bits);
void attn_diag_value_atomic_add(Site* site, void* at, Label label, float number);
void attn_diag_value_at(Site* site);

Label attn_diag_value_load(Site* site, const void* at, std::uint32_t bytes, std::uint64_t bits) {
  if (ValueRecorder* const of_host = recorder_of_host()) return of_host->load_on_host(at, bytes);
  const Watched watched;
  if (watched.runner != nullptr)
    attn_diag::host::note_global(*watched.runner, *site, watched.where(), at, bytes, false);
  return watched.recorder == nullptr ? 0
                                     : watched.recorder->load(*site, watched.where(), at, bytes,
                                                              bits, attn_diag::host::is_local(at));
}

void attn_diag_value_store(Site* site, const void* at, std::uint32_t bytes, Label label,
                           std::uint64_t bits) {
  if (ValueRecorder* const of_host = recorder_of_host())
    return of_host->store_on_host(at, bytes, label);
  const Watched watched;
  if (watched.runner == nullptr) return;
  attn_diag::host::note_global(*watched.runner, *site, watched.where(), at, bytes, true);
  if (watched.recorder != nullptr)
    watched.recorder->store(*site, watched.where(), at, bytes, label, bits,
                            attn_diag::host::is_local(at));
  else
    attn_diag::host::note_output_of_unwatched(*watched.runner, *site, watched.where(), at, bytes);
}

Label attn_diag_value_compute(Site* site, float result, Label a, float x, Label b, float y, Label c,
                              float z) {
  if ((a | b | c) == 0) return 0;
  const Watched watched({a, b, c});
  using Op = attn_diag::value_callouts::Op;
  const unsigned operands =
      site->op == Op::kFma                                                             ? 3
      : site->op == Op::kNegate || site->op == Op::kRound || site->op == Op::kAbsolute ? 1
      : site->op == Op::kFunction                                                      ? (c != 0   ? 3
                                                                                          : b != 0 ? 2
                                                                                                   : 1)
                                                                                       : 2;
  return watched.make([&] {
    return watched.recorder->compute(*site, watched.where(), result, {a, b, c}, {x, y, z},
                                     operands);
  });
}

Label attn_diag_value_pick(Site* site, Label chosen, float number, Label other) {
  if ((chosen | other) == 0) return 0;
  const Watched watched({chosen, other});
  return watched.make(
      [&] { return watched.recorder->pick(*site, watched.where(), chosen, number, other); });
}

Label attn_diag_value_convert(Site* site, Label label, float result, std::uint32_t bytes) {
  if (label == 0) return 0;
  const Watched watched({label});
  return watched.make(
      [&] { return watched.recorder->convert(*site, watched.where(), label, result, bytes); });
}

Label attn_diag_value_from_integer(Site* site, Label label, float number, std::uint32_t bytes) {
  if (label == 0) return 0;
  const Watched watched({label});
  return watched.make(
      [&] { return watched.recorder->from_integer(*site, watched.where(), label, number, bytes); });
}

void attn_diag_value_coded(int input, const void* codes, std::uint64_t count) {
  if (auto* const recorder = attn_diag::host::watching_values())
    recorder->note_coded(static_cast<unsigned>(input), codes, count);
}

Label attn_diag_value_resize(Label label, std::uint32_t bytes, std::uint32_t to) {
  if (label == 0) return 0;
  const Watched watched({label});
  return watched.make([&] { return watched.recorder->resize(label, bytes, to); });
}

Label attn_diag_value_shift(Label label, std::uint32_t bytes, std::int32_t bits) {
  if (label == 0) return 0;
  const Watched watched({label});
  return watched.make([&] { return watched.recorder->shift(label, bytes, bits); });
}

Label attn_diag_value_mask(Label label, std::uint32_t bytes, std::uint64_t mask) {
  if (label == 0) return 0;
  const Watched watched({label});
  return watched.make([&] { return watched.recorder->mask(label, bytes, mask); });
}

Label attn_diag_value_merge(Site* site, Label a, Label b, std::uint32_t bytes) {
  if ((a | b) == 0) return 0;
  const Watched watched({a, b});
  return watched.make([&] { return watched.recorder->merge(*site, watched.where(), a, b, bytes); });
}

Label attn_diag_value_join(Label low, Label high, std::uint32_t low_bytes,
                           std::uint32_t high_bytes) {
  if ((low | high) == 0) return 0;
  const Watched watched({low, high});
  return watched.make([&] { return watched.recorder->join(low, high, low_bytes, high_bytes); });
}

Label attn_diag_value_as_number(Site* site, Label label, std::uint32_t bytes, float number) {
  if (label == 0) return 0;
  const Watched watched({label});
  return watched.make(
      [&] { return watched.recorder->as_number(*site, watched.where(), label, bytes, number); });
}

void attn_diag_value_copy(Site* load, Site* store, void* to, const void* from,
                          std::uint64_t bytes) {
  using attn_diag::host::note_copied;
  const Watched watched;
  if (watched.runner == nullptr) return note_copied(to, from, bytes);
  note_copied(to, from, bytes,
              {load, watched.where(), attn_diag::host::is_local(to) ? nullptr : store});
}

void attn_diag_value_forget(void* at, std::uint64_t bytes) {
  attn_diag::host::note_cleared(at, bytes);
}

void attn_diag_value_offer(Label label, std::uint64_t bits) {
  const Watched watched;
  if (watched.recorder != nullptr) watched.recorder->offer(watched.where() & 1023, label, bits);
}

Label attn_diag_value_receive(Site* site, std::uint32_t call, std::uint64_t bits) {
  const Watched watched;
  if (watched.recorder == nullptr) return 0;
  using attn_diag::host::WarpOp;
  const auto op = static_cast<WarpOp>(call & 0xFF);
  if (op < WarpOp::kShuffle || op > WarpOp::kShuffleXor) return 0;
  const std::uint32_t thread = (watched.where() & 1023) / 32 * 32 + (call >> 16 & 31);
  return watched.recorder->receive(*site, watched.where(), thread, bits);
}

void attn_diag_value_atomic_add(Site* site, void* at, Label label, float number) {
  using namespace attn_diag::host;
  const Watched watched;
  if (watched.runner == nullptr) return;
  note_global(*watched.runner, *site, watched.where(), at, 4, false);
  if (watched.recorder != nullptr)
    watched.recorder->atomic_add(*site, watched.where(), at, label, number);
  else
    note_output_of_unwatched(*watched.runner, *site, watched.where(), at, 4);
  note_global(*watched.runner, *site, watched.where(), at, 4, true);
}

void attn_diag_value_add_sites(Site* const* sites, std::uint64_t count) {
  attn_diag::host::add_value_sites(sites, count);
}

void attn_diag_value_remove_sites(Site* const* sites, std::uint64_t) {
  attn_diag::host::remove_value_sites(sites);
}

void attn_diag_value_at(Site* site) {
  const BlockRunner* const runner = BlockRunner::current();
  if (runner != nullptr && runner->values() != nullptr) runner->values()->stand_at(site);
}

}  // extern "C"
