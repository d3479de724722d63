// Standard output and files: written completely, or an Error.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>

#include "harness/report/text.h"

namespace attn_diag::cli {

// Keeps descriptors 0 to 2 from being given to files if the caller closed them, and turns SIGPIPE
// and SIGXFSZ into errors that can be reported. Call first.
void guard_standard_streams();

// What stdout can show, from whether it is a terminal, NO_COLOR, CLICOLOR_FORCE and the locale.
report::Style stdout_style();

// From now on write_stdout() alone writes there: what a user's code prints goes to stderr.
void keep_stdout_for_reports();

bool stdout_is_terminal();

void write_stdout(const std::string& text);
// Lines for people: control characters are spelled out.
void write_stderr(const std::string& text);

// Memory of parent and child, through which a child hands over what it would write to stdout and stderr: user
// code may have closed the child's descriptors, or given their numbers to other files.
class SharedOutput {
 public:
  SharedOutput();
  ~SharedOutput();
  SharedOutput(const SharedOutput&) = delete;
  SharedOutput& operator=(const SharedOutput&) = delete;

  // In the child: from now on write_stdout() and write_stderr() put it here, as far as there is room.
  void take_over();
  // In the parent, when the child has ended.
  void write_out();

 private:
  friend void write_stdout(const std::string& text);
  friend void write_stderr(const std::string& text);
  struct Part;
  bool put(int part, const std::string& text);

  void* x_memory = nullptr;  // of two parts
};

// A text file that appears complete under its name, or not at all (a pipe or a device is written to
// as it is, and "-" is stdout), wherever user code has gone meanwhile. The constructor throws where it
// could not be written, so that this shows before long work.
class TextFile {
 public:
  explicit TextFile(const std::string& path);
  ~TextFile();
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;
  void finish(const std::string& text);

 private:
  std::string x_path, x_temporary;
  int x_descriptor = -1;
  std::optional<std::pair<dev_t, ino_t>> x_opened;  // which file that is
};

}  // namespace attn_diag::cli
