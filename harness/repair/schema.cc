#include "harness/repair/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

namespace attn_diag::repair {
namespace {

// Edits between which one choice is made.
struct Site {
  std::size_t begin = 0, end = 0;
  Way way = Way::kExpression;
  bool in_macro = false;
  std::string number;  // Edit::number
  std::vector<int> edits;
  std::vector<Site> parts;  // within it, in order
};

class FileSchema {
 public:
  FileSchema(const Code& code, const std::vector<Edit>& edits, Schema& schema)
      : x_code(code), x_edits(edits), x_schema(schema) {}

  std::string write(std::vector<int> which) {
    std::vector<Site> top = nested(grouped(std::move(which)));
    return range(0, x_code.text.size(), top);
  }

 private:
  std::vector<Site> grouped(std::vector<int> which) const {
    std::map<std::tuple<std::size_t, std::size_t, Way>, Site> sites;
    for (const int i : which) {
      const Edit& e = x_edits[static_cast<std::size_t>(i)];
      Site& site = sites[{e.site_begin, e.site_end, e.way}];
      site.begin = e.site_begin;
      site.end = e.site_end;
      site.way = e.way;
      site.in_macro |= e.in_macro;
      if (site.number.empty()) site.number = e.number;
      site.edits.push_back(i);
    }
    std::vector<Site> all;
    for (auto& [key, site] : sites) all.push_back(std::move(site));
    // Outer ones first; what is put between statements before what begins there.
    std::stable_sort(all.begin(), all.end(), [](const Site& a, const Site& b) {
      if (a.begin != b.begin) return a.begin < b.begin;
      const bool a_point = a.begin == a.end, b_point = b.begin == b.end;
      if (a_point != b_point) return a_point;
      if (a.end != b.end) return a.end > b.end;
      return a.way == Way::kStatement && b.way != Way::kStatement;
    });
    return all;
  }

  // Sites that reach beyond the one that they begin in are left out.
  std::vector<Site> nested(std::vector<Site> all) {
    Site root;
    root.end = x_code.text.size();
    std::vector<Site*> open = {&root};
    for (Site& site : all) {
      while (open.size() > 1 && site.begin >= open.back()->end) open.pop_back();
      if (site.end > open.back()->end) {
        x_schema.left.insert(x_schema.left.end(), site.edits.begin(), site.edits.end());
        continue;
      }
      auto& parts = open.back()->parts;
      parts.push_back(std::move(site));
      if (parts.back().begin != parts.back().end) {
        // Its place may move as more are added beside it; none is before it is closed.
        open.push_back(&parts.back());
      }
    }
    return std::move(root.parts);
  }

  std::string range(std::size_t begin, std::size_t end, const std::vector<Site>& parts) {
    std::string text;
    for (const Site& part : parts) {
      text += x_code.text.substr(begin, part.begin - begin);
      text += choice(part);
      begin = part.end;
    }
    return text + x_code.text.substr(begin, end - begin);
  }

  std::string at_edit(const Site& site, int number) const {
    return site.in_macro ? " " : fmt::format("\n#line {} \"{}\"\n", number, kEditFile);
  }
  std::string at_source(const Site& site, std::size_t byte) const {
    if (site.in_macro) return " ";
    const auto line = 1 + std::count(x_code.text.begin(),
                                     x_code.text.begin() + static_cast<std::ptrdiff_t>(byte), '\n');
    std::string path;
    for (const char c : x_code.path)
      path += c == '"' || c == '\\' ? fmt::format("\\{}", c) : std::string(1, c);
    return fmt::format("\n#line {} \"{}\"\n", line, path);
  }

  std::string choice(const Site& site) {
    const int first = static_cast<int>(x_schema.edits.size()) + 1;
    const int count = static_cast<int>(site.edits.size());
    x_schema.edits.insert(x_schema.edits.end(), site.edits.begin(), site.edits.end());
    const bool value = site.way == Way::kExpression;
    std::string text = at_edit(site, first);
    x_schema.first.insert(x_schema.first.end(), site.edits.size(), first);
    const std::string any = fmt::format("ATTN_DIAG_SITE({})", first);
    const std::string type =
        site.number.empty()
            ? ""
            : fmt::format("static_cast<std::remove_cvref_t<decltype({})>>", site.number);
    text += value ? "(" + any + " ? " + type + "("
                  : (site.way == Way::kStatement ? "{ " : "") + ("if (" + any + ") {");
    for (int i = 0; i < count; ++i) {
      const int number = first + i;
      const std::string& alternative =
          x_edits[static_cast<std::size_t>(site.edits[static_cast<std::size_t>(i)])].alternative;
      text += at_edit(site, number);
      const bool last = i + 1 == count;
      const std::string chosen = fmt::format("ATTN_DIAG_EDIT({})", number);
      if (value)
        text += last ? "(" + alternative + ")" : chosen + " ? (" + alternative + ") :";
      else
        text +=
            last ? "{ " + alternative + " }" : "if (" + chosen + ") { " + alternative + " } else";
    }
    text += at_edit(site, first);
    if (site.way == Way::kInsertion) return text + "}" + at_source(site, site.end);
    text += value ? ") : (" : "} else {";
    text += at_source(site, site.begin) + range(site.begin, site.end, site.parts);
    text += value ? "))" : " } }";
    return text;
  }

  const Code& x_code;
  const std::vector<Edit>& x_edits;
  Schema& x_schema;
};

// "attn-diag-edit:7:3: ..." at the start of a line; 0: there is none.
int edit_at(std::string_view line) {
  const std::size_t at = line.find(kEditFile);
  if (at == line.npos) return 0;
  const std::string_view rest = line.substr(at + std::string_view(kEditFile).size());
  int number = 0;
  if (rest.starts_with(":")) std::from_chars(rest.data() + 1, rest.data() + rest.size(), number);
  return number;
}

}  // namespace

Schema make_schema(const Program& program, const std::vector<Edit>& edits,
                   const std::vector<int>& which) {
  Schema schema;
  for (std::size_t file = 0; file < program.files.size(); ++file) {
    std::vector<int> here;
    for (const int i : which)
      if (edits[static_cast<std::size_t>(i)].file == static_cast<int>(file)) here.push_back(i);
    const Code& code = *program.files[file];
    schema.texts.push_back(here.empty() ? code.text
                                        : FileSchema(code, edits, schema).write(std::move(here)));
  }
  return schema;
}

std::string edit_declarations() {
  return "#pragma once\n"
         "#include <type_traits>\n"
         "#define ATTN_DIAG_HIDDEN __attribute__((visibility(\"hidden\")))\n"
         "extern ATTN_DIAG_HIDDEN int attn_diag_edit_chosen;\n"
         // By the first number of a place: 0, or 1 where one of its edits is chosen, or 2 where a run is noted.
         "extern ATTN_DIAG_HIDDEN unsigned char attn_diag_edit_places[];\n"
         "ATTN_DIAG_HIDDEN bool attn_diag_edit_place(int first);\n"
         "#define ATTN_DIAG_SITE(first) (__builtin_expect(attn_diag_edit_places[first] != 0, 0) && "
         "attn_diag_edit_place(first))\n"
         "#define ATTN_DIAG_EDIT(n) (attn_diag_edit_chosen == (n))\n";
}

std::string edit_definitions(const Schema& schema) {
  std::string places;
  for (const int place : schema.first) places += fmt::format("{},", place);
  return fmt::format(
      "\n#define ATTN_DIAG_SHOWN extern \"C\" __attribute__((visibility(\"default\")))\n"
      "int attn_diag_edit_chosen = 0;\n"
      "unsigned char attn_diag_edit_places[{0}] = {{}};\n"
      "static unsigned char attn_diag_edit_noted[{0}] = {{}};\n"
      "bool attn_diag_edit_place(int first) {{\n"
      "  if (attn_diag_edit_places[first] == 1) return true;\n"
      "  attn_diag_edit_noted[first] = 1;\n"
      "  return false;\n"
      "}}\n"
      "ATTN_DIAG_SHOWN void attn_diag_choose_edit(int edit) {{\n"
      "  static const int places[{0}] = {{0,{1}}};\n"
      "  attn_diag_edit_chosen = edit;\n"
      "  if (edit > 0) attn_diag_edit_places[places[edit]] = 1;\n"
      "}}\n"
      "ATTN_DIAG_SHOWN unsigned char* attn_diag_note_edits() {{\n"
      "  for (unsigned char& place : attn_diag_edit_places) place = 2;\n"
      "  return attn_diag_edit_noted;\n"
      "}}\n",
      schema.edits.size() + 1, places);
}

Blame blamed(const std::string& messages) {
  std::vector<std::string_view> lines;
  for (std::size_t begin = 0; begin < messages.size();) {
    const std::size_t end = std::min(messages.find('\n', begin), messages.size());
    lines.push_back(std::string_view(messages).substr(begin, end - begin));
    begin = end + 1;
  }
  const auto is_error = [](std::string_view line) {
    return line.find(" error: ") != line.npos || line.find(" fatal error: ") != line.npos;
  };
  std::set<int> numbers;
  Blame blame;
  std::size_t behind_last = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!is_error(lines[i])) continue;
    int number = edit_at(lines[i]);
    // What led there stands before it in messages of g++, behind it in those of clang.
    for (std::size_t j = i; number == 0 && j-- > behind_last;) number = edit_at(lines[j]);
    std::size_t next = i + 1;
    while (next < lines.size() && !is_error(lines[next])) {
      const bool note = lines[next].find(" note: ") != std::string_view::npos;
      if (number == 0 && note) number = edit_at(lines[next]);
      ++next;
    }
    if (number > 0) {
      numbers.insert(number);
    } else {
      const std::size_t colon = lines[i].find(':');
      int line = 0;
      if (colon != std::string_view::npos)
        std::from_chars(lines[i].data() + colon + 1, lines[i].data() + lines[i].size(), line);
      if (line > 0) blame.lines.emplace_back(std::string(lines[i].substr(0, colon)), line);
    }
    behind_last = i + 1;
    // What is not even an expression takes the meaning of what stands behind it.
    if (lines[i].find(" error: expected ") != std::string_view::npos) break;
  }
  blame.numbers.assign(numbers.begin(), numbers.end());
  return blame;
}

}  // namespace attn_diag::repair
