#pragma once

#include <string>

namespace attn_diag::reference::testing {

// docs/catalogue.md, made from catalogue().
std::string catalogue_page();

}  // namespace attn_diag::reference::testing
