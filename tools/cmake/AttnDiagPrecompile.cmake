# attn_diag_precompile(target [headers ...])
# Parses once for the target what most sources include of the C++ library and of other libraries; no header of
# ours, so that a change of one builds what includes it and nothing else. An include that is missing is found
# by CI's clang step, which builds with CMAKE_DISABLE_PRECOMPILE_HEADERS.

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
