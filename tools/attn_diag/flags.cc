#include "tools/attn_diag/flags.h"

#include <H5public.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <memory>

#include "attn_diag/harness/error.h"
#include "harness/report/text.h"
#include "tools/attn_diag/commands.h"
#include "tools/attn_diag/flag_groups.h"
#include "tools/attn_diag/help.h"
#include "tools/attn_diag/suggest.h"

namespace attn_diag::cli {
namespace {

constexpr int kFlagColumns = 30;
constexpr int kHelpWidth = 100;

// Help within 100 columns, with the whole command in the usage line.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(kFlagColumns); }

  std::string make_usage(const CLI::App* app, std::string) const override {
    const std::string name = app->get_parent() == nullptr ? "" : app->get_name() + " ";
    const Command* command = find_command(app->get_name());
    const char* rest = command == nullptr ? "COMMAND [FLAGS]" : command->usage;
    return fmt::format("\nUsage: attn-diag {}{}\n\n", name, rest);
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    return report::wrap(option->get_description(), kHelpWidth - kFlagColumns, 0);
  }
};

// "The commands are list, ... and build; see attn-diag --help."
std::string commands_help() {
  std::string names;
  const std::span<const Command> all = commands();
  for (std::size_t i = 0; i < all.size(); ++i)
    names += fmt::format("{}{}", i == 0 ? "" : i + 1 == all.size() ? " and " : ", ", all[i].name);
  return fmt::format("The commands are {}; see attn-diag --help.", names);
}

class Parser {
 public:
  Parser() : x_app(kSummary, "attn-diag") {
    x_app.set_help_flag("-h,--help", "This text");
    x_app.add_flag("--version", x_version, "Version of attn-diag and of HDF5");
    x_app.footer(kMainFooter);
    x_app.formatter(std::make_shared<HelpFormatter>());
    x_app.allow_extras();
    x_app.require_subcommand(0, 1);

    for (const Command& command : commands()) {
      CLI::App* app = x_app.add_subcommand(command.name, command.summary);
      app->footer(command.footer);
      app->allow_extras();
      FlagGroups groups(*app, x_flags);
      command.add_flags(groups);
      if (takes_defaults(*app))
        app->add_flag("--no-config", x_flags.no_config, kNoConfigHelp)->group(kOutputGroup);
    }
  }

  CommandLine parse(std::vector<std::string> args) {
    x_flags.build.compiler_flags = take_compiler_flags(args);
    std::reverse(args.begin(), args.end());  // as CLI11 wants them
    try {
      x_app.parse(args);
    } catch (const CLI::CallForHelp&) {
      CLI::App* on = chosen();
      return {x_flags, (on == nullptr ? x_app : *on).help(), {}};
    } catch (const CLI::ParseError& e) {
      throw Error(fmt::format("{}. See attn-diag {}--help.", e.what(), command_name()));
    }
    CLI::App* on = chosen();
    refuse_leftovers(on);
    if (x_version) return {x_flags, version_text(), {}};
    if (on == nullptr) throw Error(fmt::format("No command given. {}", commands_help()));
    x_flags.command = on->get_name();
    refuse_swallowed_flags(*on);
    CommandLine line{x_flags, std::nullopt, {}};
    for (const CLI::Option* o : on->get_options())
      if (o->count() > 0)
        line.given.insert(line.given.end(), o->get_lnames().begin(), o->get_lnames().end());
    return line;
  }

  std::vector<CommandText> texts() const {
    std::vector<CommandText> all;
    for (const Command& command : commands()) {
      const CLI::App* app = x_app.get_subcommand(command.name);
      CommandText text{command.name, command.usage, command.summary, command.footer, {}};
      for (const CLI::Option* o : app->get_options()) text.flags.push_back(flag_text(*o));
      all.push_back(std::move(text));
    }
    return all;
  }

 private:
  // Whether it has a flag that a file may set.
  static bool takes_defaults(CLI::App& app) {
    const auto options = app.get_options();
    return std::any_of(options.begin(), options.end(), [](const CLI::Option* o) {
      return !o->get_lnames().empty() && o->get_lnames().front() != "help";
    });
  }

  static FlagText flag_text(const CLI::Option& o) {
    FlagText flag;
    for (const std::string& name : o.get_snames()) flag.names.push_back("-" + name);
    for (const std::string& name : o.get_lnames()) flag.names.push_back("--" + name);
    flag.positional = flag.names.empty();
    if (flag.positional) flag.names = {o.get_name(true)};
    flag.help = o.get_description();
    flag.group = o.get_group();
    flag.type = o.get_type_name();
    flag.takes_value = o.get_expected_max() > 0;
    flag.repeats = o.get_expected_max() > 1;
    return flag;
  }

  CLI::App* chosen() {
    const auto apps = x_app.get_subcommands();
    return apps.empty() ? nullptr : apps.front();
  }
  std::string command_name() {
    CLI::App* on = chosen();
    return on == nullptr ? "" : on->get_name() + " ";
  }

  static std::vector<std::string> flag_names(CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::Option* o : app.get_options())
      for (const std::string& name : o->get_lnames()) names.push_back("--" + name);
    return names;
  }

  // What no flag and no command took.
  void refuse_leftovers(CLI::App* on) {
    std::vector<std::string> left = x_app.remaining(false);
    if (left.empty() && on != nullptr) left = on->remaining(false);
    if (left.empty()) return;
    const std::string& first = left.front();
    if (first.empty() || first[0] != '-') {
      if (on != nullptr)
        throw Error(fmt::format("{} does not take '{}'. See attn-diag {} --help.", on->get_name(),
                                first, on->get_name()));
      std::vector<std::string> names;
      for (const CLI::App* app : x_app.get_subcommands({})) names.push_back(app->get_name());
      throw Error(fmt::format("There is no command '{}'.{} {}", first, did_you_mean(first, names),
                              commands_help()));
    }
    const std::string flag = first.substr(0, first.find('='));
    if (on == nullptr)
      throw Error(fmt::format("There is no flag {} before the command. {}", flag, commands_help()));
    const char* const why = why_no_flag(on->get_name(), flag);
    throw Error(fmt::format(
        "{} has no flag {}{} See attn-diag {} --help.", on->get_name(), flag,
        why != nullptr ? fmt::format(": {}", why) : '.' + did_you_mean(flag, flag_names(*on)),
        on->get_name()));
  }

  // Why a flag that other commands have makes no sense of this one; null where it is nobody's.
  static const char* why_no_flag(std::string_view command, std::string_view flag) {
    for (const RefusedFlags& refused : find_command(command)->refused)
      if (refused.flags.find(std::string(flag) + ' ') != refused.flags.npos) return refused.why;
    return nullptr;
  }

  // CLI11 gives a flag whatever word follows it, even `--kernel --json`.
  static void refuse_swallowed_flags(CLI::App& app) {
    const std::vector<std::string> names = flag_names(app);
    for (const CLI::Option* o : app.get_options()) {
      if (o->get_lnames().empty() || o->get_expected_max() == 0) continue;
      for (const std::string& value : o->results()) {
        if (std::find(names.begin(), names.end(), value) != names.end())
          throw Error(fmt::format("--{} needs a value, but is followed by the flag {}.",
                                  o->get_lnames().front(), value));
        if (value.empty())
          throw Error(fmt::format("--{} needs a value, but was given an empty one.",
                                  o->get_lnames().front()));
      }
    }
  }

  static std::string version_text() {
    std::array<unsigned, 3> v{};
    H5get_libversion(&v[0], &v[1], &v[2]);
    return fmt::format("attn-diag {}\nHDF5 {}.{}.{}\n", ATTN_DIAG_VERSION, v[0], v[1], v[2]);
  }

  CLI::App x_app;
  Flags x_flags;
  bool x_version = false;
};

}  // namespace

CommandLine parse_command_line(const std::vector<std::string>& args) {
  return Parser().parse(args);
}

std::vector<CommandText> command_texts() { return Parser().texts(); }

}  // namespace attn_diag::cli
