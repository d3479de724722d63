// The helper's side of hdf5_document.h: the only code that lets libhdf5 read a file.
#pragma once

#include <string>

#include "harness/dump/hdf5_document.h"

namespace attn_diag {

// Opens the file at the first question and answers it and those that follow. To be called in a helper.
Bytes answer_about_hdf5(const std::string& path, const Bytes& question);

// The questions: what the file holds; a run of cells.
Bytes ask_for_listing();
Bytes ask_for_cells(const Hdf5Object& dataset, std::int64_t at, std::int64_t n);
std::vector<Hdf5Object> parse_listing(const Bytes& answer);

}  // namespace attn_diag
