# attn_diag_add_test(name SOURCES x_test.cc ... [LIBRARIES ...] [EVIDENCE])
# One Catch2 program; every test case of it becomes a CTest test. Catch2 2.13 and 3.x.
#
# Its tests carry the folder as their label ("harness/host"), and the target attn_diag_tests_<folder>
# (attn_diag_tests_harness_host) builds a folder's tests. EVIDENCE: long surveys, of which CI draws some; their label is
# "harness evidence". A test that cannot run here prints a line
# "SKIP: reason" and returns: CTest then counts it as skipped.
find_package(Catch2 REQUIRED)
include(Catch)

# Tests are compiled more often than they run; those with kernels or vectors of their own run longer.
if(NOT TARGET attn_diag_test_flags)
  add_library(attn_diag_test_flags INTERFACE)
  target_compile_options(attn_diag_test_flags INTERFACE
    $<$<CONFIG:Release>:$<IF:$<BOOL:$<TARGET_PROPERTY:ATTN_DIAG_COMPUTES>>,-O1,-O0>> ${ATTN_DIAG_PRECOMPILED_OPTIONS})
  target_link_libraries(attn_diag_test_flags INTERFACE fmt::fmt)  # whose definition precompiled headers must share
endif()
if(NOT TARGET attn_diag_test_main)
  if(Catch2_VERSION VERSION_GREATER_EQUAL 3)
    add_library(attn_diag_test_main INTERFACE)
    target_link_libraries(attn_diag_test_main INTERFACE Catch2::Catch2WithMain)
  else()
    # Written where it is not there yet: all tests are linked anew after it.
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/catch2_main.cc
      CONTENT "#define CATCH_CONFIG_MAIN\n#include <catch2/catch.hpp>\n")
    add_library(attn_diag_test_main STATIC ${PROJECT_BINARY_DIR}/catch2_main.cc)
    attn_diag_compile_lightly(attn_diag_test_main)
    target_compile_options(attn_diag_test_main PRIVATE -fno-sanitize=all)  # Catch2's code alone; else a minute more
    target_link_libraries(attn_diag_test_main PUBLIC Catch2::Catch2)
  endif()
endif()

# Whose precompiled headers all tests use; it does nothing else.
if(NOT TARGET attn_diag_precompiled_tests)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled_tests.cc CONTENT "int main() {}\n")
  add_executable(attn_diag_precompiled_tests EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/precompiled_tests.cc)
  target_include_directories(attn_diag_precompiled_tests PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(attn_diag_precompiled_tests PRIVATE attn_diag_test_main attn_diag_flags attn_diag_test_flags
    nlohmann_json::nlohmann_json)
  attn_diag_precompile(attn_diag_precompiled_tests <fmt/format.h> <nlohmann/json.hpp>
    ${PROJECT_SOURCE_DIR}/harness/testing/catch_for_tests.h)
endif()

function(attn_diag_add_test name)
  cmake_parse_arguments(ARG "EVIDENCE" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES} attn_diag_test_main attn_diag_flags attn_diag_test_flags)
  # Tests of kernels and of vectors have flags of their own, which precompiled headers must share.
  if(ARG_LIBRARIES MATCHES "host_cuda|test_kernels|native")
    set_target_properties(${name} PROPERTIES ATTN_DIAG_COMPUTES ON)
  else()
    target_precompile_headers(${name} REUSE_FROM attn_diag_precompiled_tests)
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)

  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  string(REPLACE "/" "_" folder_tests attn_diag_tests_${folder})
  if(NOT TARGET ${folder_tests})
    add_custom_target(${folder_tests})
  endif()
  add_dependencies(${folder_tests} ${name})

  # Kernels' locals lie on the stacks of their threads, as the tests expect.
  set(environment "")
  if(ATTN_DIAG_SANITIZE)
    set(environment ENVIRONMENT "ASAN_OPTIONS=detect_stack_use_after_return=0")
  endif()
  set(label "${folder}")
  if(ARG_EVIDENCE)
    string(APPEND label " evidence")
  endif()
  # Only if Catch2 itself ends content: a test that says SKIP and fails has failed.
  catch_discover_tests(${name} TEST_PREFIX "${name}:" PROPERTIES LABELS "${label}" ${environment}
    SKIP_REGULAR_EXPRESSION "SKIP:.*(All tests passed|assertions: - none -)")
endfunction()
