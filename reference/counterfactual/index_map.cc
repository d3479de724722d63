#include "reference/counterfactual/index_map.h"

#include <set>

namespace attn_diag::reference {
namespace {

class Maps {
 public:
  Maps(std::int32_t n, std::int32_t seen) : x_n(n), x_seen(seen) { add({}, "", true); }

  void add(const IndexMap& map, std::string name, bool permutes) {
    std::vector<std::int32_t> table;
    for (std::int32_t i = 0; i < x_seen; ++i) table.push_back(mapped(map, i, x_n));
    if (!x_tables.insert(std::move(table)).second) return;
    if (map.rule != IndexRule::kRight) x_maps.push_back({map, std::move(name), permutes});
  }
  std::vector<NamedIndexMap> take() { return std::move(x_maps); }

 private:
  const std::int32_t x_n, x_seen;
  std::set<std::vector<std::int32_t>> x_tables;
  std::vector<NamedIndexMap> x_maps;
};

}  // namespace

std::vector<NamedIndexMap> index_maps(std::int32_t n, std::int32_t seen, char index) {
  Maps maps(n, seen);
  const std::string i(1, index);
  std::set<std::int32_t> groups{n};
  for (std::int32_t group = 2; group < n; group *= 2)
    if (n % group == 0) groups.insert(group);
  for (const std::int32_t group : groups) {
    const std::string of = " of every " + std::to_string(group);
    if (group % 2 == 0)
      maps.add({IndexRule::kRotated, group, group / 2}, i + " ^ " + std::to_string(group / 2),
               true);
    maps.add({IndexRule::kReversed, group, 0}, i + " in reverse" + of, true);
    const bool rotates = group == n || group == 8 || group == 16;
    for (std::int32_t by = 1; rotates && by < group && by <= 8; by *= 2)
      for (const std::int32_t sign : {1, -1})
        maps.add({IndexRule::kRotated, group, sign * by},
                 i + (sign > 0 ? " + " : " - ") + std::to_string(by) + ", cyclic," + of, true);
    for (std::int32_t by = 2; by < group; by *= 2)
      if (group % by == 0)
        maps.add({IndexRule::kDealt, group, by},
                 i + " % " + std::to_string(by) + " * " + std::to_string(group / by) + " + " + i +
                     " / " + std::to_string(by) + of,
                 true);
    if (group >= 4 && group < n)
      maps.add({IndexRule::kRepeated, group, 0}, i + " % " + std::to_string(group), false);
    maps.add({IndexRule::kFirst, group, 0}, i + " - " + i + " % " + std::to_string(group), false);
  }
  return maps.take();
}

}  // namespace attn_diag::reference
