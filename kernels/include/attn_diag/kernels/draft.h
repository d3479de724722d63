// The mark of an adapter that `attn-diag adapt` drafted and nobody has read yet.
#pragma once

// How many things were guessed and not known. Every verdict says so, until the line is deleted.
#define ATTN_DIAG_DRAFT(guessed, unknown)                                                \
  extern "C" __attribute__((weak, visibility("default"))) const int* attn_diag_draft() { \
    static const int counts[] = {guessed, unknown};                                      \
    return counts;                                                                       \
  }                                                                                      \
  static_assert(true, "a semicolon ends it")
