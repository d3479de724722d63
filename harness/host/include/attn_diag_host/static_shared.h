// Static shared memory of translated kernels: what the source pass tells of each variable, and two zones around all of
// them. Thread-local storage is laid out .tdata first, common symbols last: a store far past a variable hits a zone.
#pragma once
#pragma GCC system_header  // the source pass would take the assembly below for PTX

#include <cstddef>

namespace attn_diag::host {

// Beside each variable, before and behind it. A block that changes them has stored outside the variable.
inline constexpr std::size_t kStaticGuardBytes = 128;
// Every variable begins at a multiple of this, whatever it declares.
inline constexpr std::size_t kStaticAlignment = 128;
#ifdef ATTN_DIAG_HOST_EXECUTOR_LIBRARY  // has no such variables; dlopen() has no room for its zones
inline constexpr std::size_t kBytesBeforeStatic = 4096, kBytesBehindStatic = 0;
#else
inline constexpr std::size_t kBytesBeforeStatic = 4096;
[[gnu::used]] alignas(
    1024) inline constinit thread_local unsigned char static_shared_before[kBytesBeforeStatic] = {
    0xFF};
// clang's assembler knows no such symbols: attn-diag build links static_shared_behind.h.
#if defined(__clang__)
inline constexpr std::size_t kBytesBehindStatic = 0;
#else
inline constexpr std::size_t kBytesBehindStatic = 65536;
__asm__(
    ".hidden attn_diag_static_shared_behind\n"
    ".tls_common attn_diag_static_shared_behind,65536,1024\n"
    ".type attn_diag_static_shared_behind,@object\n");
#endif
#endif
struct StaticSharedDeclaration {
  const char* name;
  const char*
      function;  // a text that is the same for the variables of one function, and no other's
  std::size_t bytes, alignment;  // as declared
  unsigned scope, number;        // nvcc lays out variables in this order
  bool of_kernel;  // else of a function, whose variables lie behind those of its caller
  bool is_read;    // what is never read or passed on in the source, nvcc leaves out
  void* (*at)();   // of the calling thread
  unsigned char* (*guard)(bool behind);
  std::size_t bytes_behind = kBytesBehindStatic;
  // No variable: where the zone behind all of them begins (static_shared_behind.h).
  bool is_end = false;
};

class StaticSharedEntry {
 public:
  explicit StaticSharedEntry(const StaticSharedDeclaration& declaration);
  ~StaticSharedEntry();
  StaticSharedEntry(const StaticSharedEntry&) = delete;
  StaticSharedEntry& operator=(const StaticSharedEntry&) = delete;
  const StaticSharedDeclaration& declaration() const { return x_declaration; }

 private:
  StaticSharedDeclaration x_declaration;
};

// `Tag`: a local class beside the variable. Mentioning `entry` makes it known when the library is loaded.
template <class Tag>
struct StaticShared {
  inline static const StaticSharedEntry entry{Tag::declaration()};
};

}  // namespace attn_diag::host
