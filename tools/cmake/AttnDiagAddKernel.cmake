# attn_diag_add_kernel(<name>
#     SOURCES <file>...             # CUDA C++; relative to the current source directory
#     [INCLUDES <dir>...]           # searched before the package's own headers
#     [DEFINITIONS <def>...]
#     [LOCKSTEP]                    # also <name>.lockstep.so, for the lockstep schedule
#     [LOCKSTEP_DEFINITIONS <def>...]
#     [FAULT <fault>]               # a planted fault: <name>@<fault>
#     [ROOT <dir>]                  # sources are shown relative to it; default: current source dir
#     [TARGET <target>]             # default: <name>_kernel
#     [CUDA_OPTIONS <option>...]    # for nvcc
#     [EXCLUDE_FROM_ALL])
#
# Builds the kernel library <name>.host.so (a module that `attn-diag --kernel` loads) from CUDA C++
# sources, against the host executor's stand-in headers, and links in attn_diag_build_info(): the
# files the library was really made from, with their hashes. The library goes to
# ATTN_DIAG_KERNEL_OUTPUT_DIRECTORY, or CMAKE_BINARY_DIR if that is not set.
#
# Where nvcc is found, the target <target>_cuda_check compiles the same sources for sm_80 and sm_90,
# with warnings as errors; attn_diag_cuda_check does so for all kernels. ATTN_DIAG_CUDA=ON makes it
# part of the default build, OFF removes it.
#
# Needs the targets attn_diag::contract, attn_diag::host_cuda and attn_diag::hash_sources, of this
# project or of find_package(attn_diag).
include_guard(GLOBAL)

set(ATTN_DIAG_CUDA AUTO CACHE STRING "Compile the kernels with nvcc too: AUTO (targets *_cuda_check), ON (by default), OFF")
set_property(CACHE ATTN_DIAG_CUDA PROPERTY STRINGS AUTO ON OFF)
if(NOT ATTN_DIAG_CUDA STREQUAL "OFF")
  find_program(ATTN_DIAG_NVCC nvcc PATHS /usr/local/cuda/bin)
  if(ATTN_DIAG_CUDA STREQUAL "ON" AND NOT ATTN_DIAG_NVCC)
    message(FATAL_ERROR "ATTN_DIAG_CUDA=ON, but nvcc was not found. Set ATTN_DIAG_NVCC, or use AUTO.")
  endif()
endif()

function(attn_diag_add_kernel name)
  cmake_parse_arguments(ARG "LOCKSTEP;EXCLUDE_FROM_ALL" "FAULT;ROOT;TARGET"
    "SOURCES;INCLUDES;DEFINITIONS;LOCKSTEP_DEFINITIONS;CUDA_OPTIONS" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS OR NOT ARG_SOURCES)
    message(FATAL_ERROR "attn_diag_add_kernel(${name}): SOURCES needed; not understood: '${ARG_UNPARSED_ARGUMENTS}'")
  endif()
  if(NOT ARG_ROOT)
    set(ARG_ROOT ${CMAKE_CURRENT_SOURCE_DIR})
  endif()
  if(NOT ARG_TARGET)
    set(ARG_TARGET ${name}_kernel)
  endif()
  set(file_stem ${name})
  if(ARG_FAULT)
    set(file_stem ${name}@${ARG_FAULT})
  endif()
  set(sources "")
  foreach(source IN LISTS ARG_SOURCES)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
    list(APPEND sources ${source})
  endforeach()
  set_source_files_properties(${sources} PROPERTIES LANGUAGE CXX)

  _attn_diag_kernel_library(${ARG_TARGET} "${file_stem}.host" "" "${ARG_DEFINITIONS}")
  if(ARG_LOCKSTEP)
    # The compiler's call-outs for every memory access; their runtime is the host executor, so the
    # sanitizer's own is not linked. Nothing vectorises between call-outs, so -O1 is enough.
    _attn_diag_kernel_library(${ARG_TARGET}_lockstep "${file_stem}.lockstep"
      "-fno-sanitize=all;-fsanitize=thread;-O1" "${ARG_DEFINITIONS};${ARG_LOCKSTEP_DEFINITIONS}")
  endif()
  if(ATTN_DIAG_NVCC AND NOT ARG_FAULT)
    _attn_diag_cuda_check(${ARG_TARGET}_cuda_check)
  endif()
endfunction()

# One module, from the variables of attn_diag_add_kernel.
function(_attn_diag_kernel_library target file_name instrumentation definitions)
  set(build_info ${CMAKE_CURRENT_BINARY_DIR}/${target}.build_info.cc)
  add_library(${target} MODULE ${sources} ${build_info})
  set_target_properties(${target} PROPERTIES
    PREFIX "" OUTPUT_NAME "${file_name}" SUFFIX ".so"
    CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  if(ATTN_DIAG_KERNEL_OUTPUT_DIRECTORY)
    set_target_properties(${target} PROPERTIES
      LIBRARY_OUTPUT_DIRECTORY ${ATTN_DIAG_KERNEL_OUTPUT_DIRECTORY})
  else()
    set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  endif()
  if(ARG_EXCLUDE_FROM_ALL)
    set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  target_include_directories(${target} BEFORE PRIVATE ${ARG_INCLUDES})
  target_compile_definitions(${target} PRIVATE ${definitions})
  target_link_libraries(${target} PRIVATE attn_diag::contract attn_diag::host_cuda)
  if(TARGET attn_diag_flags)
    target_link_libraries(${target} PRIVATE attn_diag_flags)
  endif()
  target_compile_options(${target} PRIVATE
    -xc++
    $<$<NOT:$<CONFIG:Debug>>:-O3>
    ${instrumentation})
  if(NOT DEFINED ATTN_DIAG_NATIVE OR ATTN_DIAG_NATIVE)
    target_compile_options(${target} PRIVATE -march=native)
  endif()
  target_link_options(${target} PRIVATE -Wl,--build-id)

  # What the library is made of. The compiler itself says which headers each source includes.
  set(includes $<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>)
  set(defines $<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS>)
  set(defines "$<$<BOOL:${defines}>:-D$<JOIN:${defines}, -D>>")
  set(options "$<JOIN:$<TARGET_PROPERTY:${target},COMPILE_OPTIONS>, >")
  string(TOUPPER "${CMAKE_BUILD_TYPE}" config)
  set(flags "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${config}} ${CMAKE_CXX20_STANDARD_COMPILE_OPTION}")
  set(arguments ${CMAKE_CURRENT_BINARY_DIR}/${target}.arguments)
  file(GENERATE OUTPUT ${arguments} CONTENT
    "${flags} ${options} ${defines} \"-I$<JOIN:${includes},\" \"-I>\"\n")
  set(list_headers "")
  set(header_lists "")
  foreach(source IN LISTS sources)
    cmake_path(GET source FILENAME file)
    set(header_list ${CMAKE_CURRENT_BINARY_DIR}/${target}.${file}.d)
    list(APPEND header_lists ${header_list})
    list(APPEND list_headers
      COMMAND ${CMAKE_CXX_COMPILER} -MM -MF ${header_list} @${arguments} ${source})
  endforeach()
  set(fault "")
  if(ARG_FAULT)
    set(fault --fault ${ARG_FAULT})
  endif()
  set(lockstep "")
  if(instrumentation)
    set(lockstep --lockstep)
  endif()
  add_custom_command(
    OUTPUT ${build_info}
    ${list_headers}
    COMMAND attn_diag::hash_sources --output ${build_info} --depfile ${build_info}.d --root ${ARG_ROOT}
      --compiler "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}" --backend host
      --flags "${flags} ${options} ${defines}" ${fault} ${lockstep} ${header_lists}
    DEPENDS ${sources} ${arguments} attn_diag::hash_sources
    DEPFILE ${build_info}.d
    COMMENT "Hashing the sources of ${file_name}.so"
    VERBATIM)
endfunction()

# Compiles every source with nvcc; nothing is linked and nothing is run.
function(_attn_diag_cuda_check target)
  if(NOT TARGET attn_diag_cuda_check)
    add_custom_target(attn_diag_cuda_check)
  endif()
  set(contract $<TARGET_PROPERTY:attn_diag::contract,INTERFACE_INCLUDE_DIRECTORIES>)
  set(objects "")
  foreach(source IN LISTS sources)
    cmake_path(GET source FILENAME file)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${target}.${file}.o)
    list(APPEND objects ${object})
    set(definitions ${ARG_DEFINITIONS})
    list(TRANSFORM definitions PREPEND -D)
    set(includes ${ARG_INCLUDES})
    list(TRANSFORM includes PREPEND -I)
    add_custom_command(
      OUTPUT ${object}
      COMMAND ${ATTN_DIAG_NVCC} -c -std=c++20 -O3 -Werror all-warnings -Xcompiler=-Wall,-Wextra
        -gencode arch=compute_80,code=sm_80
        -gencode arch=compute_90,code=[sm_90,compute_90]
        ${ARG_CUDA_OPTIONS} ${definitions} ${includes} "-I$<JOIN:${contract},;-I>"
        -MD -MF ${object}.d -o ${object} ${source}
      DEPENDS ${source} DEPFILE ${object}.d
      COMMENT "Compiling ${file} with nvcc for sm_80 and sm_90"
      COMMAND_EXPAND_LISTS VERBATIM)
  endforeach()
  if(ATTN_DIAG_CUDA STREQUAL "ON" AND NOT ARG_EXCLUDE_FROM_ALL)
    add_custom_target(${target} ALL DEPENDS ${objects})
  else()
    add_custom_target(${target} DEPENDS ${objects})
  endif()
  add_dependencies(attn_diag_cuda_check ${target})
endfunction()
