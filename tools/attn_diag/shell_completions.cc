#include "tools/attn_diag/shell_completions.h"

#include <fmt/format.h>

#include "tools/attn_diag/flag_values.h"

namespace attn_diag::cli {
namespace {

FlagValues values_of(const CommandText& command, const FlagText& flag) {
  return flag_values(command.name, flag.longest(), flag.type);
}

// In single quotes; of fish, in which a backslash counts within them, `backslash` doubles it.
std::string one_word(std::string_view text, bool backslash = false) {
  std::string s = "'";
  for (const char c : text) {
    if (c == '\'')
      s += backslash ? "\\'" : "'\\''";
    else if (c == '\\' && backslash)
      s += "\\\\";
    else
      s += c;
  }
  return s + "'";
}

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

// The first sentence of a help text, without what stands in brackets at its end.
std::string first_words(const std::string& help) {
  constexpr std::size_t kMost = 70;
  const std::string line = help.substr(0, help.find('\n'));
  if (line.size() <= kMost) return line;
  return line.substr(0, line.rfind(' ', kMost)) + " ...";
}

constexpr const char* kBashFunctions =
    R"sh(# Completions of attn-diag for bash: source <(attn-diag completions bash)
# bash ends words at ':' and '='; what is completed is the whole word, or the last entry of its list.
_attn_diag() {
  local line=${COMP_LINE:0:COMP_POINT} words=() word='' flag='' prefix='' REPLY='' kept i
  read -ra words <<<"$line"
  if [[ $line != *[[:space:]] ]]; then
    word=${words[-1]}
    unset 'words[-1]'
  fi
  local command=${words[1]-}
  if [[ $word == --*=* ]]; then
    flag=${word%%=*} prefix=${word%%=*}= word=${word#*=}
  elif ((${#words[@]} > 2)); then
    flag=${words[-1]}
  fi
  if [[ -z $flag ]] || ! _attn_diag_values "$command" "$flag"; then
    if [[ -z $command || $word == -* ]]; then
      REPLY=$(_attn_diag_flags "$command")
    else
      _attn_diag_values "$command" ''
    fi
  fi
  if [[ $word == *,* && $word != window:* && $REPLY != '<file>' ]]; then
    prefix+=${word%,*}, word=${word##*,}
  fi
  COMPREPLY=()
  case $REPLY in
    '<file>')
      mapfile -t COMPREPLY < <(compgen -f -- "$word")
      compopt -o filenames 2>/dev/null ;;
    '<kernel>')
      mapfile -t COMPREPLY < <(
        compgen -W "$("${words[0]}" completions kernels 2>/dev/null)" -- "$word"
        compgen -d -S / -- "$word"
        compgen -f -X '!*.so' -- "$word")
      compopt -o nospace 2>/dev/null ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$REPLY" -- "$word") ;;
  esac
  kept=$prefix$word
  kept=${kept%"${kept##*[:=]}"}
  for i in "${!COMPREPLY[@]}"; do
    COMPREPLY[i]=$prefix${COMPREPLY[i]}
    [[ $COMP_WORDBREAKS == *:* ]] && COMPREPLY[i]=${COMPREPLY[i]#"$kept"}
  done
  return 0
}
)sh";

std::string bash_value(const FlagValues& values) {
  switch (values.kind) {
    case FlagValues::Kind::kKernel:
      return "<kernel>";
    case FlagValues::Kind::kFile:
      return "<file>";
    case FlagValues::Kind::kWords:
      return joined(values.words);
    case FlagValues::Kind::kNone:
      break;
  }
  return "";
}

}  // namespace

std::string bash_completions(const std::vector<CommandText>& commands) {
  std::string names, flags, values;
  for (const CommandText& command : commands) {
    names += command.name + ' ';
    std::string line, positional;
    for (const FlagText& flag : command.flags) {
      if (flag.positional) {
        positional = bash_value(values_of(command, flag));
        continue;
      }
      for (const std::string& name : flag.names) line += name + ' ';
      if (!flag.takes_value) continue;
      for (const std::string& name : flag.names)
        values += fmt::format("    '{} {}') REPLY={} ;;\n", command.name, name,
                              one_word(bash_value(values_of(command, flag))));
    }
    flags += fmt::format("    {}) echo {} ;;\n", command.name, one_word(line));
    if (!positional.empty())
      values += fmt::format("    '{} ') REPLY={} ;;\n", command.name, one_word(positional));
  }
  return std::string(kBashFunctions) +
         "# The flags of a command; the commands.\n_attn_diag_flags() {\n  case $1 in\n" + flags +
         fmt::format("    *) echo {} ;;\n  esac\n}}\n", one_word(names + "--help --version")) +
         "# What a flag takes, or a command without one. Fails where the flag takes nothing.\n"
         "_attn_diag_values() {\n  REPLY=''\n  case \"$1 $2\" in\n" +
         values + "    *) return 1 ;;\n  esac\n}\ncomplete -F _attn_diag attn-diag\n";
}

namespace {

// Within a specification of _arguments: of the help, and of the values.
std::string zsh_escaped(std::string_view text, std::string_view special) {
  std::string s;
  for (const char c : text) {
    if (special.find(c) != special.npos) s += '\\';
    s += c;
  }
  return s;
}

std::string zsh_value(const FlagValues& values, const std::string& what) {
  switch (values.kind) {
    case FlagValues::Kind::kKernel:
      return fmt::format(":{}:_attn_diag_kernels", what);
    case FlagValues::Kind::kFile:
      return fmt::format(":{}:_files", what);
    case FlagValues::Kind::kWords:
      return fmt::format(":{}:_sequence compadd - {}", what,
                         zsh_escaped(joined(values.words), ":"));
    case FlagValues::Kind::kNone:
      break;
  }
  return fmt::format(":{}: ", what);
}

std::string zsh_spec(const CommandText& command, const FlagText& flag) {
  if (flag.positional) {
    const FlagValues values = values_of(command, flag);
    const std::string value = zsh_value(values, flag.names.front());
    return "    " + one_word((flag.repeats ? "*" : "1") + value) + " \\\n";
  }
  const std::string help = '[' + zsh_escaped(first_words(flag.help), "[]:\\") + ']';
  std::string s;
  for (const std::string& name : flag.names) {
    const std::string value =
        flag.takes_value ? (name.starts_with("--") ? "=" : "") + help +
                               zsh_value(values_of(command, flag), flag.longest().substr(2))
                         : help;
    s += "    " + one_word((flag.repeats ? "*" : "") + name + value) + " \\\n";
  }
  return s;
}

constexpr const char* kZshFunctions = R"sh(#compdef attn-diag
# Completions of attn-diag for zsh: a file _attn-diag in a folder of $fpath, or
# source <(attn-diag completions zsh) after compinit.
_attn_diag_kernels() {
  local -a kernels
  kernels=(${(f)"$($attn_diag_program completions kernels 2>/dev/null)"})
  _alternative "kernels:kernel:compadd -a kernels" "files:library:_files -g '*.so'"
}

_attn-diag() {
  local attn_diag_program=$words[1]
  if ((CURRENT == 2)); then
    _attn_diag_commands
    return
  fi
  local command=$words[2]
  shift words
  ((CURRENT--))
  case $command in
)sh";

}  // namespace

std::string zsh_completions(const std::vector<CommandText>& commands) {
  std::string cases, names;
  for (const CommandText& command : commands) {
    names += "    " + one_word(command.name + ':' + zsh_escaped(command.summary, ":")) + '\n';
    cases += fmt::format("  {})\n    _arguments -s \\\n", command.name);
    for (const FlagText& flag : command.flags) cases += zsh_spec(command, flag);
    cases += "      && return ;;\n";
  }
  return kZshFunctions + cases +
         "  esac\n}\n\n_attn_diag_commands() {\n  local -a commands\n  commands=(\n" + names +
         "  )\n  _describe command commands\n}\n\n" +
         "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n  _attn-diag \"$@\"\nelse\n"
         "  compdef _attn-diag attn-diag\nfi\n";
}

std::string fish_completions(const std::vector<CommandText>& commands) {
  std::string s =
      "# Completions of attn-diag for fish: attn-diag completions fish | source\n"
      "complete -c attn-diag -f\n";
  for (const CommandText& command : commands)
    s += fmt::format("complete -c attn-diag -n __fish_use_subcommand -a {} -d {}\n", command.name,
                     one_word(command.summary, true));
  for (const CommandText& command : commands) {
    const std::string start =
        fmt::format("complete -c attn-diag -n '__fish_seen_subcommand_from {}'", command.name);
    for (const FlagText& flag : command.flags) {
      std::string line = start;
      const FlagValues values = values_of(command, flag);
      if (!flag.positional) {
        for (const std::string& name : flag.names)
          line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
        if (flag.takes_value) line += values.kind == FlagValues::Kind::kFile ? " -rF" : " -x";
        line += " -d " + one_word(first_words(flag.help), true);
      } else if (values.kind == FlagValues::Kind::kFile) {
        line += " -F";
      }
      if (values.kind == FlagValues::Kind::kWords && (flag.takes_value || flag.positional))
        line += " -a " + one_word(joined(values.words), true);
      if (values.kind == FlagValues::Kind::kKernel)
        line += " -a '(attn-diag completions kernels 2>/dev/null; __fish_complete_suffix .so)'";
      s += line + '\n';
    }
  }
  return s;
}

}  // namespace attn_diag::cli
