# attn_diag_add_room(name [LIGHT] SOURCES ... [ROOMS ...] [LIBRARIES ...])
# A room of the harness: the folder harness/<name>, the target attn_diag_<name>. ROOMS are those below it that it uses;
# LIBRARIES what its sources alone use; LIGHT: see attn_diag_compile_lightly. tools/check_layers knows the order of the
# rooms and looks at every include.

function(attn_diag_add_room name)
  cmake_parse_arguments(ARG "LIGHT" "" "SOURCES;ROOMS;LIBRARIES" ${ARGN})
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
  # All but the light ones are compiled alike, so that one room's precompiled headers serve all.
  if(name STREQUAL base)
    attn_diag_precompile(${target} <fmt/format.h>)
  else()
    target_compile_options(${target} PRIVATE ${ATTN_DIAG_PRECOMPILED_OPTIONS})
    if(ARG_LIGHT AND ATTN_DIAG_TOGETHER)
      attn_diag_compile_lightly(${target})
    else()
      target_precompile_headers(${target} REUSE_FROM attn_diag_base)
    endif()
  endif()
  attn_diag_compile_together(${target})
  set_property(GLOBAL APPEND PROPERTY ATTN_DIAG_ROOMS ${target})
endfunction()
