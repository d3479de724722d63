# attn_diag_precompile(target [headers ...])
# Parses once for the target what most sources include of the C++ library and of other libraries; no header of
# ours, so that a change of one builds what includes it and nothing else. An include that is missing is found
# by tools/check_includes.

# Without the first, ccache does not know what is in them. The others are false alarms of gcc 12 about strings
# that are moved into vectors (gcc bug 105651 and its like), silent where system headers are read as text.
set(ATTN_DIAG_PRECOMPILED_OPTIONS "")
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  set(ATTN_DIAG_PRECOMPILED_OPTIONS
    -fpch-preprocess -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread)
endif()

function(attn_diag_precompile target)
  target_precompile_headers(${target} PRIVATE
    <algorithm> <array> <cmath> <cstdint> <cstring> <filesystem> <fstream> <functional> <limits> <map>
    <memory> <optional> <set> <string> <string_view> <utility> <vector> ${ARGN})
  target_compile_options(${target} PRIVATE ${ATTN_DIAG_PRECOMPILED_OPTIONS})
endfunction()

# attn_diag_share_precompiled(target)
# For the many targets that are compiled alike (lightly, see below): the first of them precompiles for all.
function(attn_diag_share_precompiled target)
  attn_diag_compile_lightly(${target})
  target_link_libraries(${target} PRIVATE fmt::fmt $<BUILD_INTERFACE:attn_diag_native>)
  get_property(first GLOBAL PROPERTY ATTN_DIAG_PRECOMPILED)
  if(first)
    target_compile_options(${target} PRIVATE ${ATTN_DIAG_PRECOMPILED_OPTIONS})
    target_precompile_headers(${target} REUSE_FROM ${first})
  else()
    attn_diag_precompile(${target} <fmt/format.h>)
    set_property(GLOBAL PROPERTY ATTN_DIAG_PRECOMPILED ${target})
  endif()
endfunction()

# attn_diag_compile_together(target [most])
# Compiles up to `most` (twenty) sources of the target at a time, so that what all of them include is read, and what it
# instantiates made, once. No two of its sources may then give one name to two things, not even in anonymous
# namespaces. -DATTN_DIAG_TOGETHER=OFF, as in the preset "debug": one at a time, for who edits one source again and
# again.
option(ATTN_DIAG_TOGETHER "Compile many sources at a time" ON)
function(attn_diag_compile_together target)
  set(most 20)
  if(ARGC GREATER 1)
    set(most ${ARGV1})
  endif()
  if(ATTN_DIAG_TOGETHER)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${most})
  endif()
endfunction()

# attn_diag_precompile_if_alone(target [headers ...])
# attn_diag_precompile where sources are compiled one at a time: of a few that are compiled together, precompiling
# takes longer than what it saves.
function(attn_diag_precompile_if_alone target)
  if(NOT ATTN_DIAG_TOGETHER)
    attn_diag_precompile(${target} ${ARGN})
  endif()
endfunction()

# attn_diag_compile_lightly(target)
# For what reads files and words and writes them: -O3 makes it no faster and takes a third longer to compile.
function(attn_diag_compile_lightly target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Og>)
endfunction()
