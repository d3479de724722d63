#include "harness/run/guarded_buffer.h"

#include <cstdint>
#include <string>

#include "harness/testing/catch_for_tests.h"

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

TEST_CASE("an address in a zone or far beyond it is told from its buffer, while that lives") {
  NearBuffer near;
  std::uintptr_t behind = 0;
  {
    GuardedBuffer q(10, 300, 0xFF, 0xFF, "q"), k(100, 300, 0xFF, 0xFF, "k");
    behind = reinterpret_cast<std::uintptr_t>(k.data()) + 100;
    REQUIRE(find_guarded_buffer(behind + (1 << 28), near));
    CHECK(near.name == std::string("k"));
    CHECK(near.offset == 100 + (1 << 28));
    CHECK(near.bytes == 100);
    REQUIRE(find_guarded_buffer(reinterpret_cast<std::uintptr_t>(q.data()) - 1, near));
    CHECK(near.name == std::string("q"));
    CHECK(near.offset == -1);
  }
  CHECK_FALSE(find_guarded_buffer(behind, near));
}

TEST_CASE("the zones of a guarded buffer and the buffer can be filled apart") {
  GuardedBuffer buffer(10, 300, 0x77, 0x00);
  CHECK(buffer.data()[-1] == std::byte{0x77});
  CHECK(buffer.data()[0] == std::byte{0});
  CHECK(buffer.data()[10] == std::byte{0x77});
  CHECK_FALSE(buffer.first_write_outside().has_value());
  buffer.data()[10] = std::byte{0xFF};
  CHECK(buffer.first_write_outside() == 10);
}

}  // namespace attn_diag
