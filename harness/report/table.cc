#include "harness/report/table.h"

#include <algorithm>

namespace attn_diag::report {

Table::Table(std::vector<std::string> columns) {
  for (std::string& c : columns) {
    const bool right = !c.empty() && c[0] == '>';
    x_right.push_back(right);
    x_names.push_back(right ? c.substr(1) : c);
  }
}

void Table::add(std::vector<std::string> cells) {
  cells.resize(x_names.size());
  x_rows.push_back(std::move(cells));
}

std::string Table::text(const Style& style) const {
  std::vector<int> width(x_names.size(), 0);  // 0: column left out
  for (std::size_t c = 0; c < x_names.size(); ++c) {
    for (const auto& row : x_rows) width[c] = std::max(width[c], display_width(row[c]));
    if (width[c] > 0) width[c] = std::max(width[c], display_width(x_names[c]));
  }
  const auto line = [&](const std::vector<std::string>& cells, bool heading) {
    std::string s, gap = "  ";
    for (std::size_t c = 0; c < cells.size(); ++c) {
      if (width[c] == 0) continue;
      const auto pad = static_cast<std::size_t>(width[c] - display_width(cells[c]));
      const std::string cell = heading ? paint(style, Colour::kDim, cells[c]) : cells[c];
      s += gap;
      s += x_right[c] ? std::string(pad, ' ') + cell : cell + std::string(pad, ' ');
    }
    s.erase(s.find_last_not_of(' ') + 1);
    return s + '\n';
  };
  std::string out = line(x_names, true);
  for (const auto& row : x_rows) out += line(row, false);
  return out;
}

}  // namespace attn_diag::report
