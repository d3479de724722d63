if(ATTN_DIAG_SANITIZE)
  # Of the whole directory, so that they precede every target's own options: what is compiled for
  # lockstep takes them back with -fno-sanitize=all.
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined
    -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()
if(ATTN_DIAG_FUZZERS)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# Compile options every target of the project links to, as the INTERFACE target attn_diag_flags.
add_library(attn_diag_flags INTERFACE)
target_compile_options(attn_diag_flags INTERFACE
  -ffp-contract=off   # host results do not depend on compiler or instruction set
  -Wall -Wextra -Wpedantic -Wnon-virtual-dtor
  # Of sources compiled together it would speak of one's locals and another's constants; tools/check_includes looks at
  # each alone.
  $<$<NOT:$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>>:-Wshadow>
  # g++ 13 raises it for any function that takes a temporary and returns a reference.
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,13>>:-Wno-dangling-reference>
  # It looks for garbage whenever its heap has doubled, from 128 MB on, and finds little.
  $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=600000>
  $<$<BOOL:${ATTN_DIAG_WERROR}>:-Werror>)
# For code whose speed depends on the instruction set (kernels, reference, comparison).
add_library(attn_diag_native INTERFACE)
if(ATTN_DIAG_NATIVE)
  target_compile_options(attn_diag_native INTERFACE -march=native)
endif()
