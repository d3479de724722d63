// The commands. A new one is a row of the table in commands.cc, its flags there, and a file of its own with what it does.
#pragma once

#include <span>
#include <string_view>

#include "tools/attn_diag/session.h"

namespace attn_diag::cli {

class FlagGroups;

// Flags of other commands that make no sense of one, each followed by a blank, and why: it ends in a full stop.
struct RefusedFlags {
  std::string_view flags;
  const char* why;
};

struct Command {
  const char* name;     // "trace"
  const char* usage;    // "--kernel KERNEL [FLAGS]"
  const char* summary;  // one line
  const char* footer;   // of its --help: what it does, examples, exit codes
  void (*add_flags)(FlagGroups& groups);
  CommandResult (*run)(const Session& session);
  bool runs_kernels;  // and so works in a child process (child.h)
  std::span<const RefusedFlags> refused;
};

std::span<const Command> commands();
// Null: there is none of this name.
const Command* find_command(std::string_view name);

}  // namespace attn_diag::cli
