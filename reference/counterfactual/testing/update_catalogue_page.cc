// Writes docs/catalogue.md anew: update_catalogue_page PATH
#include <cstdio>
#include <fstream>

#include "reference/counterfactual/testing/catalogue_page.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: update_catalogue_page docs/catalogue.md\n", stderr);
    return 2;
  }
  std::ofstream page(argv[1]);
  page << attn_diag::reference::testing::catalogue_page();
  page.close();
  if (page) return 0;
  std::fprintf(stderr, "cannot write %s\n", argv[1]);
  return 2;
}
