#include "tools/attn_diag/project_config.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <toml++/toml.h>
#include <algorithm>
#include <filesystem>

#include "attn_diag/harness/error.h"
#include "tools/attn_diag/suggest.h"
#include "tools/attn_diag/values.h"

namespace attn_diag::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFileName = "attn-diag.toml";
constexpr const char* kForAll = "defaults";

std::string find_file() {
  std::error_code error;
  for (fs::path folder = fs::current_path(error); !error && !folder.empty();
       folder = folder.parent_path()) {
    const fs::path file = folder / kFileName;
    std::error_code no_such;
    if (fs::is_regular_file(file, no_such)) return file.string();
    if (folder == folder.parent_path()) break;
  }
  return "";
}

// A file may name a library, whose code then runs: one that somebody else put into a folder above is not taken.
void refuse_strangers(const std::string& file) {
  struct stat status {};
  if (::geteuid() == 0 || ::stat(file.c_str(), &status) != 0) return;
  if (status.st_uid == ::geteuid() || status.st_uid == 0) return;
  throw Error(fmt::format(
      "{} belongs to another user ({}), and may name code to run: it is not taken. Copy it if you "
      "trust it, or use --no-config.",
      file, status.st_uid));
}

class Reader {
 public:
  Reader(std::string file, const std::string& command)
      : x_file(std::move(file)), x_command(command), x_commands(command_texts()) {}

  // Checks all of it; keeps what is for the command.
  void read() {
    toml::table root;
    try {
      root = toml::parse_file(x_file);
    } catch (const toml::parse_error& e) {
      throw Error(
          fmt::format("{}:{}: not TOML: {}.", x_file, e.source().begin.line, e.description()));
    }
    for (const auto& [name, node] : root) {
      const std::string section(name.str());
      const toml::table* table = node.as_table();
      if (table == nullptr)
        fail(node, fmt::format("'{}' stands outside of a section: put it below [{}] or a "
                               "command's, as [trace].",
                               section, kForAll));
      read_section(section, *table);
    }
  }

  struct Setting {
    const FlagText* flag;
    std::string name;                 // without dashes
    std::vector<std::string> values;  // empty: a switch that is on
    bool on = true;  // false: a switch that is off, or a flag that is another's business
  };
  // Those of the command; its own section first.
  std::vector<Setting> settings() const {
    std::vector<Setting> all = x_own;
    for (const Setting& s : x_for_all)
      if (std::none_of(x_own.begin(), x_own.end(),
                       [&](const Setting& own) { return own.flag == s.flag; }))
        all.push_back(s);
    return all;
  }

 private:
  [[noreturn]] void fail(const toml::node& node, const std::string& what) const {
    throw Error(fmt::format("{}:{}: {}", x_file, node.source().begin.line, what));
  }

  static std::vector<std::string> flag_names(const CommandText& command) {
    std::vector<std::string> names;
    for (const FlagText& flag : command.flags)
      for (const std::string& name : flag.names)
        if (name.starts_with("--") && name != "--help" && name != "--no-config")
          names.push_back(name.substr(2));
    return names;
  }
  static const FlagText* find_flag(const CommandText& command, const std::string& key) {
    if (key == "help" || key == "no-config") return nullptr;
    for (const FlagText& flag : command.flags)
      if (std::find(flag.names.begin(), flag.names.end(), "--" + key) != flag.names.end())
        return &flag;
    return nullptr;
  }

  void read_section(const std::string& section, const toml::table& table) {
    const auto command = std::find_if(x_commands.begin(), x_commands.end(),
                                      [&](const CommandText& c) { return c.name == section; });
    if (section != kForAll && command == x_commands.end()) {
      std::vector<std::string> names = {kForAll};
      for (const CommandText& c : x_commands) names.push_back(c.name);
      fail(table, fmt::format("there is no command '{}' for a section.{}", section,
                              did_you_mean(section, names)));
    }
    for (const auto& [key, node] : table) {
      const std::string name(key.str());
      if (command != x_commands.end()) {
        const FlagText* flag = find_flag(*command, name);
        if (flag == nullptr)
          fail(node, fmt::format("{} has no flag '{}'.{} See attn-diag {} --help.", section, name,
                                 did_you_mean(name, flag_names(*command)), section));
        Setting setting = setting_of(*flag, name, node);
        if (section == x_command) x_own.push_back(std::move(setting));
      } else {
        read_for_all(name, node);
      }
    }
  }

  void read_for_all(const std::string& name, const toml::node& node) {
    bool known = false;
    std::vector<std::string> names;
    for (const CommandText& command : x_commands) {
      const std::vector<std::string> more = flag_names(command);
      names.insert(names.end(), more.begin(), more.end());
      const FlagText* flag = find_flag(command, name);
      if (flag == nullptr) continue;
      known = true;
      Setting setting = setting_of(*flag, name, node);
      if (command.name == x_command) x_for_all.push_back(std::move(setting));
    }
    if (known) return;
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    fail(node, fmt::format("no command has a flag '{}'.{}", name, did_you_mean(name, names)));
  }

  Setting setting_of(const FlagText& flag, const std::string& name, const toml::node& node) const {
    Setting setting{&flag, name, {}, true};
    if (!flag.takes_value) {
      const toml::value<bool>* on = node.as_boolean();
      if (on == nullptr) fail(node, fmt::format("'{}' is a switch: it takes true or false.", name));
      setting.on = on->get();
      return setting;
    }
    if (const toml::array* list = node.as_array()) {
      for (const toml::node& one : *list) setting.values.push_back(value_of(flag, name, one));
      if (list->empty()) fail(node, fmt::format("'{}' is given an empty list.", name));
      if (!flag.repeats) setting.values = {fmt::format("{}", fmt::join(setting.values, ","))};
    } else {
      setting.values = {value_of(flag, name, node)};
    }
    return setting;
  }

  std::string value_of(const FlagText& flag, const std::string& name,
                       const toml::node& node) const {
    std::string text;
    if (const auto* s = node.as_string())
      text = s->get();
    else if (const auto* i = node.as_integer())
      text = fmt::format("{}", i->get());
    else if (const auto* x = node.as_floating_point())
      text = fmt::format("{}", x->get());
    else
      fail(node, fmt::format("'{}' takes text, a number, or a list of these.", name));
    if (text.empty()) fail(node, fmt::format("'{}' is given an empty text.", name));
    const bool path = flag.type == "FILE" || flag.type == "DIR" ||
                      ((name == "kernel" || name == "inputs") && text.find('/') != text.npos);
    if (!path || text == "-") return text;
    return from_here(flag.type.empty() ? split_list(name, text) : std::vector<std::string>{text});
  }

  // Paths of the file, which are meant from its folder, as they are from the working directory. What has no '/' is a
  // name where there are several.
  std::string from_here(const std::vector<std::string>& entries) const {
    std::string out;
    for (const std::string& entry : entries) {
      std::error_code error;
      fs::path path(entry);
      if (path.is_relative() && (entries.size() == 1 || entry.find('/') != entry.npos)) {
        path = (fs::path(x_file).parent_path() / path)
                   .lexically_normal()
                   .lexically_relative(fs::current_path(error));
        if (path.string().find('/') == std::string::npos) path = fs::path(".") / path;
      }
      out += (out.empty() ? "" : ",") + path.string();
    }
    return out;
  }

  std::string x_file, x_command;
  std::vector<CommandText> x_commands;
  std::vector<Setting> x_own, x_for_all;
};

// Whether a flag that was given leaves no room for the default of another one.
bool makes_moot(const std::string& given, const std::string& other) {
  constexpr std::pair<const char*, const char*> kMoot[] = {
      {"seqlen", "seqlen-q"}, {"seqlen", "seqlen-k"},     {"heads", "kv-heads"},
      {"lines", "no-lines"},  {"head-dim", "head-dim-v"}, {"json", "format"},
      {"format", "json"},     {"stage", "gate"},          {"gate", "stage"}};
  if (given == other || given == "no-" + other || other == "no-" + given) return true;
  return std::any_of(std::begin(kMoot), std::end(kMoot),
                     [&](const auto& pair) { return given == pair.first && other == pair.second; });
}

// With the inputs of a file come sizes, type and seed.
bool comes_with_inputs(const std::string& name) {
  constexpr std::string_view kNames[] = {"batch",    "heads",    "kv-heads", "seqlen",
                                         "seqlen-q", "seqlen-k", "head-dim", "head-dim-v",
                                         "dtype",    "layout",   "seed",     "input-scale"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

}  // namespace

ProjectDefaults take_project_defaults(std::vector<std::string>& args, CommandLine& line) {
  ProjectDefaults defaults;
  const std::string command = line.flags.command;
  if (line.flags.no_config || command == "completions") return defaults;
  const std::string file = find_file();
  if (file.empty()) return defaults;
  refuse_strangers(file);
  Reader reader(file, command);
  reader.read();
  const std::string& inputs = line.flags.inputs;
  const bool file_inputs =
      inputs.find('/') != inputs.npos || inputs.ends_with(".h5") || inputs.ends_with(".hdf5");
  for (const Reader::Setting& setting : reader.settings()) {
    const bool moot =
        std::any_of(line.given.begin(), line.given.end(),
                    [&](const std::string& given) { return makes_moot(given, setting.name); });
    if (!setting.on || moot || (file_inputs && comes_with_inputs(setting.name))) continue;
    if (setting.values.empty()) defaults.words.push_back("--" + setting.name);
    for (const std::string& value : setting.values) {
      defaults.words.push_back("--" + setting.name);
      defaults.words.push_back(value);
    }
  }
  std::vector<std::string> words = defaults.words;
  words.emplace_back("--no-config");
  args.insert(std::find(args.begin(), args.end(), command) + 1, words.begin(), words.end());
  try {
    line = parse_command_line(args);
  } catch (const Error& e) {
    throw Error(
        fmt::format("{} (With what {} sets: {}.)", e.what(), file, shell_line(defaults.words)));
  }
  if (!defaults.words.empty()) defaults.file = file;
  return defaults;
}

}  // namespace attn_diag::cli
