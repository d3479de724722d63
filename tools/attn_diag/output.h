// Standard output and files: written completely, or an Error.
#pragma once

#include <string>

#include "harness/report/text.h"

namespace attn_diag::cli {

// Keeps descriptors 0 to 2 from being given to files if the caller closed them, and turns SIGPIPE
// and SIGXFSZ into errors that can be reported. Call first.
void guard_standard_streams();

// What stdout can show, from whether it is a terminal, NO_COLOR, CLICOLOR_FORCE and the locale.
report::Style stdout_style();

// From now on write_stdout() alone writes there: what a user's code prints goes to stderr.
void keep_stdout_for_reports();

void write_stdout(const std::string& text);

// A text file that appears complete under its name, or not at all (a pipe or a device is written to
// as it is). The constructor throws where it
// could not be written, so that this shows before long work.
class TextFile {
 public:
  explicit TextFile(std::string path);
  ~TextFile();
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;
  void finish(const std::string& text);

 private:
  std::string x_path, x_temporary;
  int x_descriptor = -1;
};

}  // namespace attn_diag::cli
