// A heat map as a PNG file.
#pragma once

#include <string>

#include "harness/compare/error_maps.h"

namespace attn_diag::report {

// The program for gnuplot that draws it, with its data.
std::string map_program(const ErrorMap& map, const std::string& title, const std::string& png);

// Throws Error where gnuplot, which the distribution has, is not installed.
void require_gnuplot();

// Runs gnuplot. Throws Error where that is not installed, or cannot draw.
void write_map_png(const ErrorMap& map, const std::string& title, const std::string& path);

}  // namespace attn_diag::report
