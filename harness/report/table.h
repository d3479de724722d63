// Tables of text with aligned columns.
#pragma once

#include <string>
#include <vector>

#include "harness/report/text.h"

namespace attn_diag::report {

class Table {
 public:
  // A column's name; '>' before it aligns the column to the right.
  explicit Table(std::vector<std::string> columns);

  // Cells may be painted; missing cells are empty.
  void add(std::vector<std::string> cells);
  std::size_t rows() const { return x_rows.size(); }

  // Every line indented by two columns; columns that are empty in every row are left out.
  std::string text(const Style& style) const;

 private:
  std::vector<std::string> x_names;
  std::vector<bool> x_right;
  std::vector<std::vector<std::string>> x_rows;
};

}  // namespace attn_diag::report
