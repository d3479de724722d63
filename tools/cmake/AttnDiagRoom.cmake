# attn_diag_add_room(name SOURCES ... [FAST ...] [ROOMS ...] [LIBRARIES ...])
# A room of the harness: the folder harness/<name>, the target attn_diag_<name>. ROOMS are those below it that it uses;
# LIBRARIES what its sources alone use; FAST: more sources, which compute with every number of a tensor, so that they
# are worth compiling with -O3 (the others: attn_diag_compile_lightly). tools/check_layers knows the order of the rooms
# and looks at every include.

function(attn_diag_add_room name)
  cmake_parse_arguments(ARG "" "" "SOURCES;FAST;ROOMS;LIBRARIES" ${ARGN})
  list(TRANSFORM ARG_ROOMS PREPEND attn_diag_)
  set(target attn_diag_${name})
  add_library(${target} STATIC ${ARG_SOURCES} ${ARG_FAST})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(${target}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/harness/include>
           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    PRIVATE ${PROJECT_SOURCE_DIR})
  if(NOT name STREQUAL base)  # which knows nothing of attention
    target_link_libraries(${target} PUBLIC attn_diag_contract attn_diag_reference ${ARG_ROOMS})
  endif()
  target_link_libraries(${target} PRIVATE ${ARG_LIBRARIES} $<BUILD_INTERFACE:attn_diag_flags>)
  attn_diag_share_precompiled(${target})
  attn_diag_compile_together(${target})
  if(ARG_FAST)
    set_source_files_properties(${ARG_FAST} PROPERTIES
      COMPILE_OPTIONS "$<$<CONFIG:Release>:-O3>" SKIP_PRECOMPILE_HEADERS ON)
  endif()
  set_property(GLOBAL APPEND PROPERTY ATTN_DIAG_ROOMS ${target})
endfunction()
