#include "tools/attn_diag/man_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/attn_diag/help.h"

namespace attn_diag::cli {
namespace {

// Text that roff shows as it is.
std::string escaped(std::string_view text) {
  std::string s;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) s += "\\&";
    if (c == '\\')
      s += "\\e";
    else if (c == '-')
      s += "\\-";
    else if (c == '~')
      s += "\\(ti";
    else if (c == '^')
      s += "\\(ha";
    else if (c == '`')
      s += "\\(ga";
    else
      s += c;
    line_begins = c == '\n';
  }
  return s;
}

// As an argument of a macro.
std::string argument(std::string_view text) {
  std::string s;
  for (const char c : text) s += c == '"' ? "\\(dq" : escaped(std::string_view(&c, 1));
  return '"' + s + '"';
}

std::string upper(std::string_view text) {
  std::string s(text);
  std::transform(s.begin(), s.end(), s.begin(), [](unsigned char c) { return std::toupper(c); });
  return s;
}

// A footer of --help: paragraphs as they are, what is indented (examples) as it is typed.
std::string footer_text(std::string_view footer) {
  std::string s = ".PP\n";
  bool typed = false;
  while (!footer.empty()) {
    const std::size_t end = std::min(footer.find('\n'), footer.size());
    const std::string_view line = footer.substr(0, end);
    footer.remove_prefix(std::min(end + 1, footer.size()));
    const bool indented = line.starts_with("  ");
    if (indented != typed) s += indented ? ".RS 4\n.nf\n" : ".fi\n.RE\n";
    typed = indented;
    if (line.empty()) {
      if (!s.ends_with(".PP\n")) s += ".PP\n";
    } else {
      s += escaped(indented ? line.substr(2) : line) + '\n';
    }
  }
  if (typed) s += ".fi\n.RE\n";
  if (s.ends_with(".PP\n")) s.resize(s.size() - 4);  // an empty paragraph is a warning
  return s;
}

std::string flag_text(const FlagText& flag) {
  std::string names;
  for (const std::string& name : flag.names)
    names += (names.empty() ? "" : ", ") + std::string("\\fB") + escaped(name) + "\\fR";
  if (flag.takes_value && !flag.positional)
    names +=
        " \\fI" + escaped(flag.type.empty() ? upper(flag.longest().substr(2)) : flag.type) + "\\fR";
  return ".TP\n" + names + '\n' + escaped(flag.help) + '\n';
}

std::string command_text(const CommandText& command) {
  std::string s =
      fmt::format(".SS {}\n", argument("attn-diag " + command.name + ' ' + command.usage));
  s += escaped(command.summary) + ".\n" + footer_text(command.footer);
  for (const FlagText& flag : command.flags) s += flag_text(flag);
  return s;
}

}  // namespace

std::string man_page(const std::vector<CommandText>& commands) {
  std::string s = fmt::format(
      ".TH ATTN\\-DIAG 1 \"\" \"attn\\-diag {}\" \"User Commands\"\n.SH NAME\n"
      "attn\\-diag \\- finds why an attention kernel is wrong\n"
      ".SH SYNOPSIS\n.B attn\\-diag\n.I COMMAND\n[\\fIFLAGS\\fR]\n.SH DESCRIPTION\n{}\n",
      ATTN_DIAG_VERSION, escaped(kSummary));
  s += ".SH COMMANDS\n";
  for (const CommandText& command : commands)
    s += ".TP\n\\fB" + escaped(command.name) + "\\fR\n" + escaped(command.summary) + ".\n";
  s += ".SH \"EXAMPLES AND EXIT CODES\"\n" + footer_text(std::string_view(kMainFooter).substr(1));
  s += ".SH FLAGS\n";
  for (const CommandText& command : commands) s += command_text(command);
  s += ".SH FILES\n.TP\n\\fBattn\\-diag.toml\\fR\nDefaults of flags, here or in a folder above: "
       "[defaults] for every command, [COMMAND] for one; keys are the names of flags.\n";
  return s;
}

}  // namespace attn_diag::cli
