#include "harness/report/page.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "attn_diag/harness/error.h"
#include "harness/base/printable.h"
#include "harness/report/page_assets.h"

namespace attn_diag::report {
namespace {

namespace fs = std::filesystem;

struct Section {
  const char* id;
  const char* title;  // empty: the section has its own
  std::string (*html)(const PageView& view);
};

// In the order of the page.
constexpr std::array<Section, 9> kSections = {{
    {"verdict", "", verdict_section},
    {"line", "The line", line_section},
    {"diagnosis", "Diagnosis", diagnosis_section},
    {"pipeline", "Pipeline", pipeline_section},
    {"maps", "Where the errors are", maps_section},
    {"invariants", "What must hold without a reference", invariants_section},
    {"check", "What memory does", check_section},
    {"provenance", "Provenance", provenance_section},
    {"text", "As text", text_section},
}};

// As a script may hold it, which ends at the first "</script", wherever that is.
std::string in_script(std::string text, std::string_view what, std::string_view instead) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += instead.size())
    text.replace(at, what.size(), instead);
  return text;
}

}  // namespace

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : printable(text, false)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string plotting_library() {
  // As `attn-diag` was installed with it, else the distribution's.
  std::error_code ignored;
  const fs::path beside = fs::read_symlink("/proc/self/exe", ignored).parent_path().parent_path() /
                          "share/attn_diag/d3.min.js";
  const fs::path of_debian = "/usr/share/nodejs/d3/dist/d3.min.js";
  for (const fs::path& path : {beside, of_debian}) {
    std::ifstream file(path, std::ios::binary);
    std::string text(std::istreambuf_iterator<char>(file), {});
    if (!text.empty()) return text;
  }
  throw Error(
      fmt::format("The page is drawn with D3, which was expected at {} or {}, and is at neither. "
                  "Install it (Debian, Ubuntu: "
                  "apt-get install node-d3), or put a d3.min.js of version 5 or newer at the "
                  "former. Without -o the pictures "
                  "are shown in the terminal.",
                  beside.string(), of_debian.string()));
}

std::string page_html(const PageView& view, const std::string& library) {
  std::string body;
  for (const Section& section : kSections) {
    const std::string html = section.html(view);
    if (html.empty()) continue;
    body += fmt::format("<section id=\"{}\">\n", section.id);
    if (*section.title != '\0') body += fmt::format("<h2>{}</h2>\n", section.title);
    body += html + "</section>\n";
  }
  // The policy is the promise that nothing is fetched.
  return fmt::format(
             "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
             "<meta name=\"color-scheme\" content=\"light dark\">\n"
             "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
             "script-src "
             "'unsafe-inline'; style-src 'unsafe-inline'\">\n<title>{}</title>\n<style>\n",
             escape(view.subject + ": " + view.headline.substr(0, view.headline.find(',')))) +
         kPageStyle + "</style>\n</head>\n<body>\n<main>\n" + body +
         "</main>\n<script type=\"application/json\" id=\"data\">" +
         in_script(dump_json(page_data(view)), "<", "\\u003c") + "</script>\n<script>" +
         in_script(library, "</script", "<\\/script") + "</script>\n<script>\n" + kPageScript +
         "</script>\n</body>\n</html>\n";
}

}  // namespace attn_diag::report
