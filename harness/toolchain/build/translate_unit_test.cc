#include "harness/toolchain/build/translate_unit.h"

#include <fstream>

#include "harness/testing/catch_for_tests.h"
#include "harness/toolchain/build/scratch.h"

namespace attn_diag::build {

TEST_CASE("columns behind the end of a source's line are not told") {
  const ScratchFolder folder;
  std::ofstream(folder / "x.cu") << "int a;\nfloat* p = f<<<1, 2>>>(a);\n";
  const std::string right = "x.cu:1:5: error: 'a' is not used\n    1 | int a;\n      |     ^\n";
  CHECK(with_columns_of_source(right, folder / "") == right);
  CHECK(with_columns_of_source("x.cu:2:145: error: no f\n    2 | float* p = f<<<1, 2>>>(a);\n"
                               "      |                     ~~~^~~~\nx.cu:2:7: note: p\n"
                               "      |       ^\n",
                               folder / "") ==
        "x.cu:2: error: no f\n    2 | float* p = f<<<1, 2>>>(a);\nx.cu:2:7: note: p\n"
        "      |       ^\n");
  // Of what cannot be read nothing is known.
  CHECK(with_columns_of_source("y.cu:2:145: error: no f\n", folder / "") ==
        "y.cu:2:145: error: no f\n");
}

}  // namespace attn_diag::build
