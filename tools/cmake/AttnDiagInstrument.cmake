# Looks for a clang++ and the headers of the very LLVM that it is made of, for the plugin of
# harness/instrument. Sets ATTN_DIAG_CLANG, ATTN_DIAG_LLVM_INCLUDE_DIR and ATTN_DIAG_INSTRUMENT_PLUGIN,
# all empty where there is no such pair: then nothing is instrumented.
set(ATTN_DIAG_CLANG "")
set(ATTN_DIAG_LLVM_INCLUDE_DIR "")
set(ATTN_DIAG_INSTRUMENT_PLUGIN "")
foreach(suffix IN ITEMS "" -18 -17 -16 -15 -14)
  find_program(llvm_config_program llvm-config${suffix} NO_CACHE)
  find_program(clang_program clang++${suffix} NO_CACHE)
  if(llvm_config_program AND clang_program)
    execute_process(COMMAND ${llvm_config_program} --version OUTPUT_VARIABLE llvm_version
      OUTPUT_STRIP_TRAILING_WHITESPACE)
    execute_process(COMMAND ${clang_program} --version OUTPUT_VARIABLE clang_version)
    execute_process(COMMAND ${llvm_config_program} --includedir OUTPUT_VARIABLE llvm_includes
      OUTPUT_STRIP_TRAILING_WHITESPACE)
    string(REGEX MATCH "version ([0-9.]+)" clang_version "${clang_version}")
    if(CMAKE_MATCH_1 STREQUAL llvm_version AND llvm_version VERSION_GREATER_EQUAL 14
       AND EXISTS ${llvm_includes}/llvm/Passes/PassPlugin.h)
      set(ATTN_DIAG_CLANG ${clang_program})
      set(ATTN_DIAG_LLVM_INCLUDE_DIR ${llvm_includes})
      # Part of its name, so that no cache of compiled files takes one for another.
      file(GLOB plugin_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/harness/instrument/*.cc
        ${PROJECT_SOURCE_DIR}/harness/instrument/*.h)
      set(text "${llvm_version}")
      foreach(source IN LISTS plugin_sources)
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
        file(SHA256 ${source} hash)
        string(APPEND text ${hash})
      endforeach()
      string(SHA256 hash "${text}")
      string(SUBSTRING ${hash} 0 8 hash)
      set(ATTN_DIAG_INSTRUMENT_PLUGIN ${PROJECT_BINARY_DIR}/lib/attn_diag/instrument_${hash}.so)
    endif()
  endif()
  unset(llvm_config_program)
  unset(clang_program)
  if(ATTN_DIAG_CLANG)
    break()
  endif()
endforeach()
if(ATTN_DIAG_CLANG)
  message(STATUS "Kernels are instrumented by ${ATTN_DIAG_CLANG} (LLVM ${llvm_version})")
else()
  if(ATTN_DIAG_TESTS)
    message(FATAL_ERROR "The tests need a clang++ and the headers of its own LLVM, and none was found. "
      "tools/setup installs both (clang, llvm-dev); or build without tests: -DATTN_DIAG_TESTS=OFF")
  endif()
  message(STATUS "No clang++ with the headers of its own LLVM was found: kernels are not instrumented, so that "
    "attn-diag check and the schedule lockstep are not available. tools/setup installs both (clang, llvm-dev)")
endif()
