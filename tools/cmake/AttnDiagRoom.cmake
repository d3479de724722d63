# attn_diag_add_room(name [FAST] SOURCES ... [ROOMS ...] [LIBRARIES ...])
# A room of the harness: the folder harness/<name>, the target attn_diag_<name>. ROOMS are those below it that it uses;
# LIBRARIES what its sources alone use; FAST: it computes with every number of a tensor, so that it is worth compiling
# with -O3 (the others: attn_diag_compile_lightly). tools/check_layers knows the order of the rooms and looks at every
# include.

function(attn_diag_add_room name)
  cmake_parse_arguments(ARG "FAST" "" "SOURCES;ROOMS;LIBRARIES" ${ARGN})
  list(TRANSFORM ARG_ROOMS PREPEND attn_diag_)
  set(target attn_diag_${name})
  add_library(${target} STATIC ${ARG_SOURCES})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(${target}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/harness/include>
           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    PRIVATE ${PROJECT_SOURCE_DIR})
  if(NOT name STREQUAL base)  # which knows nothing of attention
    target_link_libraries(${target} PUBLIC attn_diag_contract attn_diag_reference ${ARG_ROOMS})
  endif()
  target_link_libraries(${target}
    PRIVATE fmt::fmt ${ARG_LIBRARIES} $<BUILD_INTERFACE:attn_diag_flags> $<BUILD_INTERFACE:attn_diag_native>)
  # Rooms that are compiled alike share the precompiled headers of the lowest of them.
  if(ARG_FAST)
    set(kind FAST)
  else()
    set(kind LIGHT)
    attn_diag_compile_lightly(${target})
  endif()
  get_property(precompiled GLOBAL PROPERTY ATTN_DIAG_PRECOMPILED_${kind})
  if(precompiled)
    target_compile_options(${target} PRIVATE ${ATTN_DIAG_PRECOMPILED_OPTIONS})
    target_precompile_headers(${target} REUSE_FROM ${precompiled})
  else()
    attn_diag_precompile(${target} <fmt/format.h>)
    set_property(GLOBAL PROPERTY ATTN_DIAG_PRECOMPILED_${kind} ${target})
  endif()
  attn_diag_compile_together(${target})
  set_property(GLOBAL APPEND PROPERTY ATTN_DIAG_ROOMS ${target})
endfunction()
