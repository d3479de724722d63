# attn_diag_add_test(name SOURCES x_test.cc ... [LIBRARIES ...])
# One Catch2 program; every test case of it becomes a CTest test. Catch2 2.13 and 3.x.
#
# Its tests carry the folder as their label ("harness/host"), and the target attn_diag_tests_<folder>
# (attn_diag_tests_harness_host) builds a folder's tests. A test that cannot run here prints a line
# "SKIP: reason" and returns: CTest then counts it as skipped.
find_package(Catch2 REQUIRED)
include(Catch)

if(NOT TARGET attn_diag_test_main)
  if(Catch2_VERSION VERSION_GREATER_EQUAL 3)
    add_library(attn_diag_test_main INTERFACE)
    target_link_libraries(attn_diag_test_main INTERFACE Catch2::Catch2WithMain)
  else()
    file(WRITE ${PROJECT_BINARY_DIR}/catch2_main.cc "#define CATCH_CONFIG_MAIN\n#include <catch2/catch.hpp>\n")
    add_library(attn_diag_test_main STATIC ${PROJECT_BINARY_DIR}/catch2_main.cc)
    target_link_libraries(attn_diag_test_main PUBLIC Catch2::Catch2)
  endif()
endif()

function(attn_diag_add_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES} attn_diag_test_main attn_diag_flags)
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
  # Only if Catch2 itself ends content: a test that says SKIP and fails has failed.
  catch_discover_tests(${name} TEST_PREFIX "${name}:" PROPERTIES LABELS "${folder}" ${environment}
    SKIP_REGULAR_EXPRESSION "SKIP:.*(All tests passed|assertions: - none -)")
endfunction()
