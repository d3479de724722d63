#include "harness/host/check/checker.h"

#include <link.h>
#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "harness/host/allocations.h"
#include "harness/host/check/static_arrays.h"
#include "harness/host/check/stored_values.h"
#include "harness/host/launch_scope.h"
#include "harness/host/text.h"

namespace attn_diag::host {
namespace {

// Findings kept of each kind, whatever the limit: the report folds some into one and drops others.
constexpr int kLeastSeen = 1000;

// Nothing else has been seen of these bytes since.
void note_host_wrote(ShadowPage& page, std::uint32_t offset, std::uint32_t n, bool initialised) {
  page.fit(offset, n);
  Record* record = page.at(offset);
  for (Record* const end = record + (n >> page.shift()); record != end; ++record)
    *record = {{initialised ? kHostEpoch : Epoch{}, 0, 0}, {}, {}, {}};
}

struct ImageSearch {
  std::uintptr_t at;
  bool found;
};

// The stack of the launching thread, which has the kernel's arguments: begin and bytes.
std::pair<std::uintptr_t, std::size_t> own_stack() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return {};
  void* bottom = nullptr;
  std::size_t bytes = 0;
  pthread_attr_getstack(&attributes, &bottom, &bytes);
  pthread_attr_destroy(&attributes);
  return {reinterpret_cast<std::uintptr_t>(bottom), bytes};
}

int look_in_image(dl_phdr_info* info, std::size_t, void* data) {
  auto& search = *static_cast<ImageSearch*>(data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type == PT_LOAD &&
        search.at - (info->dlpi_addr + segment.p_vaddr) < segment.p_memsz)
      search.found = true;
  }
  return search.found ? 1 : 0;
}

// "element 511", of the size of the access; else "byte 2046".
std::string element_text(const SeenFinding& finding, std::int64_t offset) {
  const auto bytes = static_cast<std::int64_t>(finding.access.bytes);
  return bytes > 0 && offset % bytes == 0 ? concat("element ", offset / bytes)
                                          : concat("byte ", offset);
}

}  // namespace

const char* name(CheckKind kind) {
  switch (kind) {
    case CheckKind::kRace:
      return "race";
    case CheckKind::kMissingFence:
      return "missing-fence";
    case CheckKind::kUninitialisedRead:
      return "uninitialised-read";
    case CheckKind::kOutOfBounds:
      return "out-of-bounds";
    case CheckKind::kUseAfterFree:
      return "use-after-free";
    case CheckKind::kMisaligned:
      return "misaligned";
    case CheckKind::kAsyncCopy:
      return "async-copy";
    case CheckKind::kIntOverflow:
      return "int-overflow";
    case CheckKind::kInputWrite:
      return "input-write";
    case CheckKind::kUnwrittenOutput:
      return "unwritten-output";
    case CheckKind::kLaunch:
      break;
  }
  return "launch";
}

const char* name(Severity severity) {
  return severity == Severity::kError    ? "error"
         : severity == Severity::kLatent ? "latent"
                                         : "benign";
}

bool reads_absent_lane(const CheckFinding& finding) {
  return finding.kind == CheckKind::kUninitialisedRead && finding.space.empty();
}

void register_memory(const void* memory, std::size_t bytes, const std::string& name,
                     bool initialised) {
  ScopeState* const scope = current_scope();
  if (scope == nullptr || scope->checker == nullptr) return;
  scope->checker->register_memory(reinterpret_cast<std::uintptr_t>(memory), bytes, name,
                                  initialised);
}

void mark_input(const void* memory, std::size_t bytes) {
  ScopeState* const scope = current_scope();
  if (scope == nullptr || scope->checker == nullptr) return;
  SparseShadow& global = scope->checker->global();
  for_each_page(global, reinterpret_cast<std::uintptr_t>(memory), bytes,
                [](ShadowPage& page, std::uint32_t, std::uint32_t) { page.input = true; });
}

Checker::Checker(const CheckOptions& options) : x_options(options) {
  for (const Allocation& a : Allocations::instance().live())
    register_allocation(a.begin, a.bytes, memory_name(a.kind), true);
}

void Checker::register_allocation(std::uintptr_t begin, std::size_t bytes, const char* what,
                                  bool initialised) {
  const std::string number = concat(what, " #", ++x_allocated);
  register_memory(begin, bytes, number, initialised);
  if (const auto it = x_memory.find(begin); it != x_memory.end()) it->second.number = number;
}

void Checker::name_memory(const char* name, std::uintptr_t at) {
  const auto after = x_memory.upper_bound(at);
  if (after == x_memory.begin()) return;
  WatchedMemory& memory = std::prev(after)->second;
  if (memory.number.empty() || at - memory.begin >= memory.bytes ||
      !memory.parts.try_emplace(at, name).second)
    return;
  const bool is_whole = memory.parts.size() == 1 && at == memory.begin;
  memory.name = is_whole ? name : memory.number;
}

WatchedMemory::Part WatchedMemory::part_of(std::uintptr_t at) const {
  const std::uintptr_t past = begin + bytes;
  if (parts.empty()) return {name, begin, past};
  const auto after = parts.upper_bound(at);
  const std::uintptr_t end = after == parts.end() ? past : after->first;
  if (after == parts.begin()) return {number, begin, end};
  return {std::prev(after)->second, std::prev(after)->first, end};
}

void Checker::note_end(const std::vector<StackWord>& returns) {
  if (!x_ended_at.empty() || x_launches.empty()) return;
  x_ended_at.push_back(offsets_of(returns));
}

void Checker::note_end_of_other(const std::string& file, int line, const Returns& returns) {
  constexpr std::size_t kMost = 8;
  if (x_ended_at.empty() || x_ended_at.size() >= kMost) return;
  Returns offsets = offsets_of(returns);
  const auto same = [&](const Returns& known) {
    return std::equal(known.begin(), known.end(), offsets.begin(), offsets.end(),
                      [](const StackWord& a, const StackWord& b) { return a.value == b.value; });
  };
  if (std::any_of(x_ended_at.begin(), x_ended_at.end(), same)) return;
  x_ended_at.push_back(std::move(offsets));
  x_others_wait.push_back({file, line, ""});
}

Checker::Returns Checker::offsets_of(const Returns& returns) const {
  Returns offsets;
  for (const StackWord& word : returns)
    offsets.push_back({word.at, word.value - x_launches.back().base});
  return offsets;
}

void Checker::begin_launch(const LaunchPlan& plan) {
  x_first_segment += static_cast<std::uint32_t>(x_segments.size());
  x_segments.clear();
  x_launches.push_back({kernel_name(plan.call.kernel), plan.library.path, plan.library.base,
                        plan.config.gridDim, plan.config.blockDim});
  ++x_summary.launches;
  x_ended_at.clear();
  x_others_wait.clear();
  x_ignored.clear();
  x_handovers.clear();
  for (auto& [begin, memory] : x_memory)
    if (!memory.number.empty()) {
      memory.name = memory.number;
      memory.parts.clear();
    }
  if (x_libraries.insert(plan.library.base).second)
    for (const StaticArray& variable : device_variables(plan.library)) {
      const std::uintptr_t begin = plan.library.base + variable.begin;
      register_memory(begin, variable.bytes, variable.name, true);
      x_memory[begin].guard_bytes = variable.guard_bytes;
      x_memory[begin].is_constant = variable.is_constant;
      x_memory[begin].shape = variable.shape;
      // What lies behind a variable is nobody's, in whichever page, whatever else is in that.
      for_each_page(x_global, begin + variable.bytes, variable.guard_bytes,
                    [](ShadowPage& page, std::uint32_t, std::uint32_t) {
                      page.mixed |= page.begin == page.end;
                    });
    }
  const auto [bottom, bytes] = own_stack();
  ignore(bottom, bytes);
}

std::uint32_t Checker::new_segment(std::uint64_t block, std::uint32_t interval) {
  x_segments.push_back({block, interval});
  return x_first_segment + static_cast<std::uint32_t>(x_segments.size() - 1);
}

void Checker::register_memory(std::uintptr_t begin, std::size_t bytes, const std::string& name,
                              bool initialised) {
  if (bytes == 0) return;
  WatchedMemory& memory = x_memory[begin] = {};
  memory.begin = begin;
  memory.bytes = bytes;
  memory.name = name;
  for_each_page(x_global, begin, bytes,
                [&](ShadowPage& page, std::uint32_t offset, std::uint32_t n) {
                  const bool same = page.begin == offset && page.end == offset + n && !page.mixed;
                  if (n < kPageBytes && !same && (page.mixed || page.end != 0)) {
                    // What was seen of the other arrays in this page stays.
                    page.mixed = true;
                    page.begin = offset;
                    page.end = offset + n;
                    note_host_wrote(page, offset, n, initialised);
                    return;
                  }
                  page.forget();
                  page.mixed = false;
                  page.begin = offset;
                  page.end = offset + n;
                  page.initialised = initialised;
                });
}

void Checker::mark_freed(std::uintptr_t begin) {
  const auto it = x_memory.find(begin);
  if (it == x_memory.end()) return;
  it->second.freed = true;
  for_each_page(x_global, begin, it->second.bytes,
                [&](ShadowPage& page, std::uint32_t, std::uint32_t) {
                  page.begin = page.end = 0;
                  page.mixed = true;
                });
}

void Checker::mark_initialised(std::uintptr_t begin, std::size_t bytes) {
  if (nearest(begin) == nullptr || begin - nearest(begin)->begin >= nearest(begin)->bytes) return;
  for_each_page(x_global, begin, bytes,
                [](ShadowPage& page, std::uint32_t offset, std::uint32_t n) {
                  if (page.begin == offset && page.end == offset + n && !page.mixed) {
                    page.forget();
                    page.initialised = true;
                    return;
                  }
                  note_host_wrote(page, offset, n, true);
                });
}

const WatchedMemory* Checker::nearest(std::uintptr_t at) const {
  auto after = x_memory.upper_bound(at);
  const WatchedMemory* const above = after == x_memory.end() ? nullptr : &after->second;
  if (after == x_memory.begin()) return above;
  const WatchedMemory* const below = &std::prev(after)->second;
  if (above == nullptr || at < below->begin + below->bytes) return below;
  return at - (below->begin + below->bytes) <= above->begin - at ? below : above;
}

bool Checker::is_guard(std::uintptr_t at) const {
  const auto after = x_memory.upper_bound(at);
  if (after == x_memory.begin()) return false;
  const WatchedMemory& below = std::prev(after)->second;
  return at - (below.begin + below.bytes) < below.guard_bytes;
}

bool Checker::may_be_unnamed_constant(std::uintptr_t at) const {
  const WatchedMemory* const near = nearest(at);
  return near != nullptr && near->is_constant && !is_guard(at);
}

bool Checker::is_other_memory(std::uintptr_t at) const {
  for (const Stretch& stretch : x_ignored)
    if (at - stretch.begin < stretch.bytes) return true;
  ImageSearch search{at, false};
  dl_iterate_phdr(look_in_image, &search);
  return search.found;
}

// What the finding's array has been written of, on either side of what nobody has.
void Checker::note_written(SeenFinding& finding) {
  const WatchedMemory* const memory = nearest(finding.at);
  if (memory == nullptr) return;
  const WatchedMemory::Part part = memory->part_of(finding.at);
  if (finding.at < part.begin) return;
  // Whether the byte is written, and where what is known of it begins and ends.
  const auto look = [&](std::uintptr_t at, std::uintptr_t& begin, std::uintptr_t& past) {
    ShadowPage& page = x_global.page(at);
    const std::uintptr_t first = at & ~(kPageBytes - 1);
    begin = first;
    past = first + kPageBytes;
    if (!page.touched()) return page.initialised;
    const std::uintptr_t granule = std::uintptr_t{1} << page.shift();
    begin = at & ~(granule - 1);
    past = begin + granule;
    const Entry& writer = page.at(static_cast<std::uint32_t>(at - first))->writer;
    if (writer.epoch > kHostEpoch && !finding.writer) finding.writer = writer.pc;
    return writer.epoch != 0;
  };
  std::uintptr_t begin = 0, past = 0;
  for (std::uintptr_t at = finding.at; at > part.begin; at = begin)
    if (look(at - 1, begin, past)) {
      finding.written_below = static_cast<std::int64_t>(std::min(past, at) - part.begin);
      break;
    }
  for (std::uintptr_t at = finding.at; at < part.end; at = past)
    if (look(at, begin, past)) {
      finding.written_above = static_cast<std::int64_t>(std::max(begin, at) - part.begin);
      break;
    }
  const bool below = finding.written_below >= 0, above = finding.written_above >= 0;
  const std::string from = element_text(finding, finding.written_above);
  const std::string to = element_text(finding, finding.written_below);
  if (below && above)
    finding.advice = concat("What lies before ", to, ", and from ", from,
                            " on, is written: store what is between, or mend the index, here or "
                            "of those stores");
  else if (below)
    finding.advice =
        concat("What lies before ", to,
               " is written, and nothing from there on: read no further, or store more");
  else if (above)
    finding.advice = concat("What lies from ", from,
                            " on is written, and nothing before: begin there, or store more");
}

void Checker::add(const SeenFinding& finding) {
  const Key key{std::uint64_t{finding.access.pc} << 32 | finding.other.pc,
                static_cast<std::uint32_t>(x_launches.size() - 1), finding.kind, finding.severity,
                finding.array};
  const auto known = x_found.find(key);
  if (known != x_found.end()) {
    ++x_findings[known->second].count;
    return;
  }
  int& kept = x_kept[static_cast<std::size_t>(finding.kind)];
  if (kept >= std::max(x_options.max_findings, kLeastSeen)) {
    ++x_summary.dropped;
    return;
  }
  ++kept;
  x_found.emplace(key, x_findings.size());
  x_findings.push_back(finding);
  x_findings.back().launch = key.launch;
  x_findings.back().count = 1;
  if (finding.kind == CheckKind::kUninitialisedRead && std::string_view(finding.space) == "global")
    note_written(x_findings.back());
}

void Checker::settle_later(const SeenFinding& finding, std::uintptr_t at, std::size_t bytes) {
  Unsettled& store = x_unsettled.emplace_back();
  store.finding = finding;
  store.at = at;
  const auto* const memory = reinterpret_cast<const std::byte*>(at);
  store.before.assign(memory, memory + bytes);
}

// The later store has just been made.
void Checker::note_values(Unsettled& store) {
  SeenFinding& finding = store.finding;
  const auto* const now = reinterpret_cast<const std::byte*>(store.at);
  const std::string first = stored_value(store.before);
  const std::string second = stored_value({now, store.before.size()});
  if (!first.empty() && !second.empty())
    finding.message += concat(": the first stores ", first, ", the second ", second);
  if (finding.advice.empty())
    finding.advice = advice_for_stores(first, second, finding.access.pc == finding.other.pc);
}

void Checker::settle_now() {
  for (Unsettled& store : x_unsettled) {
    if (std::memcmp(store.before.data(), reinterpret_cast<const void*>(store.at),
                    store.before.size()) == 0) {
      store.finding.severity = Severity::kBenign;
      store.finding.message =
          "threads store to the same bytes with nothing to order them, here equal values";
      store.finding.advice = "Harmless while the values are equal; let one thread store";
    } else {
      note_values(store);
    }
    add(store.finding);
  }
  x_unsettled.clear();
}

void Checker::unseen(const std::string& what, std::uintptr_t pc) {
  const auto launch = static_cast<std::uint32_t>(x_launches.size() - 1);
  x_unseen.try_emplace({launch, static_cast<std::uint32_t>(pc - x_launches.back().base)}, what);
}

}  // namespace attn_diag::host
