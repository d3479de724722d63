// Style and script of the page: page.css and page.js, which the build puts into the program.
#pragma once

namespace attn_diag::report {

extern const char* const kPageStyle;
extern const char* const kPageScript;

}  // namespace attn_diag::report
