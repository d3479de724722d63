#include "harness/guarded_buffer.h"

#include <cstdint>

#include "harness/catch_for_tests.h"

namespace attn_diag {

TEST_CASE("writes inside a guarded buffer are no finding") {
  GuardedBuffer buffer(10, 300);
  CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % 256 == 0);
  for (std::size_t i = 0; i < buffer.size(); ++i) buffer.data()[i] = std::byte{0};
  CHECK_FALSE(buffer.first_write_outside().has_value());
}

TEST_CASE("the first byte written outside a guarded buffer is found on either side") {
  GuardedBuffer buffer(10, 300);
  buffer.data()[10] = std::byte{0};
  CHECK(buffer.first_write_outside() == 10);
  buffer.data()[-1] = std::byte{0};
  CHECK(buffer.first_write_outside() == -1);
}

TEST_CASE("an empty guarded buffer has guards too") {
  GuardedBuffer buffer(0, 1);
  CHECK_FALSE(buffer.first_write_outside().has_value());
  buffer.data()[0] = std::byte{1};
  CHECK(buffer.first_write_outside() == 0);
}

}  // namespace attn_diag
