// Files that appear under their names only when they are complete.
#pragma once

#include <string>

namespace attn_diag {

// The file that a name stands for, and that a finished one replaces: where a symbolic link (/dev/stdout is one)
// leads, if that is a file or not there yet.
std::string where_it_leads(const std::string& path);

// Picks a temporary name that no file has, ".NAME.PID-N.part", in the directory of `path`, and makes
// sure that a file can be created there. The caller creates it, exclusively; commit() renames it.
// Without commit, or on any error, the temporary file is removed and an existing file is untouched. A
// killed process can leave the temporary file behind, never a half-written one under the final name. The
// data is not forced to disk (fsync): a dump can be made again, and waiting for the disk would dominate
// the run.
class PendingFile {
 public:
  // Throws Error: the file exists and `replace` is false, it is not a regular file, the directory is
  // missing, read-only or may not be written.
  PendingFile(const std::string& path, bool replace);
  ~PendingFile();
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;

  const std::string& temporary_path() const { return x_temporary; }
  // Throws Error if the file has come into being meanwhile and `replace` is false.
  void commit();

 private:
  void require_free() const;

  std::string x_path, x_temporary;
  bool x_replace;
  bool x_committed = false;
};

}  // namespace attn_diag
