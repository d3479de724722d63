#include "harness/host/static_layout.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <string_view>
#include <tuple>

#include "attn_diag_host/static_shared.h"

namespace attn_diag::host {
namespace {

struct Registry {
  std::mutex mutex;
  std::vector<const StaticSharedEntry*> entries;
  std::uint64_t changes = 0;
};

Registry& registry() {
  static auto* const the_registry =
      new Registry;  // libraries are unloaded after static objects are gone
  return *the_registry;
}

// "... kernel(int)::attn_diag_shared_12_0::declaration() [with T = half]" without what differs between the
// variables of one function.
std::string function_of(std::string_view text) {
  const std::size_t local = text.find("::attn_diag_shared_");
  const std::size_t end = text.find("::declaration()", local);
  if (local == text.npos || end == text.npos) return std::string(text);
  return std::string(text.substr(0, local)) + std::string(text.substr(end));
}

StaticLayout lay_out(const KernelLibrary& library,
                     const std::vector<const StaticSharedEntry*>& entries) {
  StaticLayout layout;
  layout.end = library.tls_bytes;
  if (library.tls_module == 0) return layout;
  const auto storage = reinterpret_cast<std::uintptr_t>(thread_storage(library));
  const auto offset_of = [&](const void* p) {
    return reinterpret_cast<std::uintptr_t>(p) - storage;
  };
  std::map<std::string, std::vector<StaticSharedDeclaration>> functions;
  for (const StaticSharedEntry* entry : entries) {
    const StaticSharedDeclaration& d = entry->declaration();
    if (!library.has_code_at(reinterpret_cast<std::uintptr_t>(d.at))) continue;
    if (d.is_end)
      layout.end = std::min(layout.end, offset_of(d.at()));
    else
      functions[function_of(d.function)].push_back(d);
  }
  if (functions.empty()) return layout;
  layout.begin = kBytesBeforeStatic;
  for (auto& [function, variables] : functions) {
    std::sort(variables.begin(), variables.end(), [](const auto& a, const auto& b) {
      return std::tie(a.scope, a.number) < std::tie(b.scope, b.number);
    });
    StaticLayout::Function& known = layout.functions.emplace_back();
    std::size_t device = 0;
    for (const StaticSharedDeclaration& d : variables) {
      const std::uintptr_t begin = offset_of(d.at());
      // An inline function of two sources.
      if (std::any_of(
              layout.variables.begin(), layout.variables.end(),
              [&](const StaticVariable& v) { return v.begin == begin && v.name == d.name; }))
        continue;
      const std::size_t place = (device + d.alignment - 1) / d.alignment * d.alignment;
      layout.variables.push_back({begin, d.bytes, d.name, d.alignment, place});
      known.is_kernel = d.of_kernel;
      if (d.is_read) {
        known.variables.push_back(layout.variables.back());
        device = place + d.bytes;
      }
      for (const bool behind : {false, true})
        layout.guards.push_back({offset_of(d.guard(behind)), kStaticGuardBytes});
      // Whatever comes next begins at a multiple of kStaticAlignment, too.
      if (const std::size_t used = d.bytes % kStaticAlignment; used != 0)
        layout.guards.push_back({begin + d.bytes, kStaticAlignment - used});
      layout.end = std::min(layout.end, library.tls_bytes - d.bytes_behind);
    }
  }
  std::sort(layout.variables.begin(), layout.variables.end(),
            [](const auto& a, const auto& b) { return a.begin < b.begin; });
  std::sort(layout.guards.begin(), layout.guards.end());
  layout.guards.erase(std::unique(layout.guards.begin(), layout.guards.end()), layout.guards.end());
  return layout;
}

// The first multiples of the alignment at or behind each place.
StaticPlaces aligned(const StaticPlaces& places, std::size_t alignment) {
  StaticPlaces found;
  for (std::size_t at = 0; at < kStaticAlignment; ++at)
    if (places[at]) found.set((at + alignment - 1) / alignment * alignment % kStaticAlignment);
  return found;
}

StaticPlaces moved(const StaticPlaces& places, std::size_t bytes) {
  const std::size_t by = bytes % kStaticAlignment;
  return places << by | places >> (kStaticAlignment - by);
}

}  // namespace

StaticPlaces StaticLayout::device_places(
    const StaticVariable& wanted, const std::function<bool(const StaticVariable&)>& is_used) const {
  for (const Function& function : functions) {
    StaticPlaces places(1);
    if (!function.is_kernel) places.set();
    for (const StaticVariable& v : function.variables) {
      const StaticPlaces begins = aligned(places, v.alignment);
      if (v.begin == wanted.begin) return begins;
      const StaticPlaces behind = moved(begins, v.bytes);
      places = is_used(v) ? behind : behind | places;
    }
  }
  return aligned(StaticPlaces().set(), wanted.alignment);
}

StaticSharedEntry::StaticSharedEntry(const StaticSharedDeclaration& declaration)
    : x_declaration(declaration) {
  const std::lock_guard lock(registry().mutex);
  registry().entries.push_back(this);
  ++registry().changes;
}

StaticSharedEntry::~StaticSharedEntry() {
  const std::lock_guard lock(registry().mutex);
  std::erase(registry().entries, this);
  ++registry().changes;
}

const StaticVariable* StaticLayout::find(std::uintptr_t offset) const {
  const auto after =
      std::upper_bound(variables.begin(), variables.end(), offset,
                       [](std::uintptr_t at, const StaticVariable& v) { return at < v.begin; });
  if (after == variables.begin()) return nullptr;
  const StaticVariable& v = *(after - 1);
  return offset - v.begin < v.bytes ? &v : nullptr;
}

StaticLayout::Outside StaticLayout::nearest(std::uintptr_t offset) const {
  Outside found;
  std::uintptr_t least = ~std::uintptr_t{0};
  for (const StaticVariable& v : variables) {
    const std::uintptr_t distance = offset < v.begin             ? v.begin - offset
                                    : offset < v.begin + v.bytes ? 0
                                                                 : offset - (v.begin + v.bytes);
    if (distance >= least) continue;
    least = distance;
    found = {&v, static_cast<std::int64_t>(offset - v.begin)};
  }
  return found;
}

const StaticLayout& static_layout(const KernelLibrary& library) {
  static std::map<std::uintptr_t, StaticLayout> known;  // by base
  static std::uint64_t known_at = 0;
  const std::lock_guard lock(registry().mutex);
  if (known_at != registry().changes) known.clear();
  known_at = registry().changes;
  const auto [place, is_new] = known.try_emplace(library.base);
  if (is_new) place->second = lay_out(library, registry().entries);
  return place->second;
}

}  // namespace attn_diag::host
