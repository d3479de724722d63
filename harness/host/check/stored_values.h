// What two stores to one place have stored, as far as the bytes show.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace attn_diag::host {

// "0", "1.5 (0x3FC00000)", "0x3C00"; empty: too long to help.
std::string stored_value(std::span<const std::byte> bytes);

// What to do where two threads store different values, which are known.
const char* advice_for_stores(const std::string& first, const std::string& second, bool one_line);

}  // namespace attn_diag::host
