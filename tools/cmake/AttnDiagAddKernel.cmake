# attn_diag_add_kernel(<name>
#     SOURCES <file>...             # CUDA C++; relative to the current source directory
#     [INCLUDES <dir>...]           # searched before the package's own headers
#     [DEFINITIONS <def>...]
#     [LOCKSTEP]                    # also <name>.lockstep.so, for the lockstep schedule
#     [FAULT <fault>]               # a planted fault: <name>@<fault>
#     [ROOT <dir>]                  # sources are shown relative to it; default: current source dir
#     [TARGET <target>]             # default: <name>_kernel
#     [CUDA_OPTIONS <option>...]    # for nvcc
#     [CUDA_DEFINITIONS <def>...]   # for nvcc, instead of DEFINITIONS
#     [CUDA_ARCHITECTURES <arch>...]  # default: ATTN_DIAG_CUDA_ARCHITECTURES
#     [EXCLUDE_FROM_ALL])
#
# Builds kernel libraries (modules that `attn-diag --kernel` loads) from CUDA C++ sources:
#   <name>.host.so   target <target>: against the host executor's stand-in headers
#   <name>.cuda.so   target <target>_cuda, where nvcc is found: for GPUs
# and links attn_diag_build_info() into each: the files it was really made from, with their hashes.
# They go to ATTN_DIAG_KERNEL_OUTPUT_DIRECTORY, or CMAKE_BINARY_DIR if that is not set.
#
# For the host, sources are preprocessed and put through the source pass (translate_source), then
# compiled: <<<>>>, __shared__ and inline PTX are read there. The options of these builds are those of
# kernel_build.conf, which `attn-diag build` reads too. The lockstep build is made by the clang++ that this
# file names, with the project's plugin; where it names none, the target is there and builds nothing.
#
# Needs the targets attn_diag::contract, attn_diag::host_cuda, attn_diag::hash_sources and
# attn_diag::translate_source, of this project or of find_package(attn_diag).
include_guard(GLOBAL)

# In a build tree and in an installed one: ../../attn_diag/kernel_build.conf.
if(NOT ATTN_DIAG_KERNEL_BUILD_CONF)
  get_filename_component(ATTN_DIAG_KERNEL_BUILD_CONF
    "${CMAKE_CURRENT_LIST_DIR}/../../attn_diag/kernel_build.conf" ABSOLUTE)
endif()
set(ATTN_DIAG_KERNEL_BUILD_CONF "${ATTN_DIAG_KERNEL_BUILD_CONF}" CACHE INTERNAL
  "Options of kernel builds for the host")
foreach(group IN ITEMS preprocess compile instrumented instrumenter plugin)
  file(STRINGS "${ATTN_DIAG_KERNEL_BUILD_CONF}" lines REGEX "^${group} ")
  list(TRANSFORM lines REPLACE "^${group} " "")
  list(JOIN lines " " options)
  separate_arguments(options UNIX_COMMAND "${options}")
  set(ATTN_DIAG_KERNEL_${group}_OPTIONS "${options}" CACHE INTERNAL "of ATTN_DIAG_KERNEL_BUILD_CONF")
endforeach()
if(ATTN_DIAG_KERNEL_plugin_OPTIONS)
  get_filename_component(directory "${ATTN_DIAG_KERNEL_BUILD_CONF}" DIRECTORY)
  get_filename_component(plugin "${ATTN_DIAG_KERNEL_plugin_OPTIONS}" ABSOLUTE BASE_DIR "${directory}")
  set(ATTN_DIAG_KERNEL_plugin_OPTIONS "${plugin}" CACHE INTERNAL "of ATTN_DIAG_KERNEL_BUILD_CONF")
endif()

set(ATTN_DIAG_CUDA AUTO CACHE STRING
  "Build for GPUs too: AUTO (where nvcc is found), ON (an error if it is not), OFF")
set_property(CACHE ATTN_DIAG_CUDA PROPERTY STRINGS AUTO ON OFF)
set(ATTN_DIAG_CUDA_ARCHITECTURES "80-real;90" CACHE STRING
  "GPU architectures, as CMake's CUDA_ARCHITECTURES: 90-real is code for sm_90, 90-virtual PTX, 90 both")
option(ATTN_DIAG_CUDA_QUICK
  "Where nvcc can (12.9 and newer), compile for GPUs in a tenth of the time, into slow code: where no GPU runs it" OFF)
set(nvcc_version "")
if(NOT ATTN_DIAG_CUDA STREQUAL "OFF")
  find_program(ATTN_DIAG_NVCC nvcc PATHS /usr/local/cuda/bin)
  if(ATTN_DIAG_NVCC)
    execute_process(COMMAND ${ATTN_DIAG_NVCC} --version OUTPUT_VARIABLE nvcc_version)
    if(NOT nvcc_version MATCHES "V([0-9.]+)")
      message(FATAL_ERROR "${ATTN_DIAG_NVCC} --version does not say its version. Set ATTN_DIAG_NVCC, or ATTN_DIAG_CUDA=OFF.")
    endif()
    set(nvcc_version ${CMAKE_MATCH_1})
  elseif(ATTN_DIAG_CUDA STREQUAL "ON")
    message(FATAL_ERROR "ATTN_DIAG_CUDA=ON, but nvcc was not found. Set ATTN_DIAG_NVCC, or use AUTO.")
  else()
    message(STATUS "nvcc was not found: kernels are built for the host executor alone")
  endif()
endif()
# Empty where nothing is built for GPUs.
set(ATTN_DIAG_NVCC_VERSION "${nvcc_version}" CACHE INTERNAL "of ATTN_DIAG_NVCC")

function(attn_diag_add_kernel name)
  cmake_parse_arguments(ARG "LOCKSTEP;EXCLUDE_FROM_ALL" "FAULT;ROOT;TARGET"
    "SOURCES;INCLUDES;DEFINITIONS;CUDA_OPTIONS;CUDA_DEFINITIONS;CUDA_ARCHITECTURES" ${ARGN})
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
  _attn_diag_kernel_library(${ARG_TARGET} "${file_stem}.host" "" "${ARG_DEFINITIONS}")
  if(ARG_LOCKSTEP)
    if(ATTN_DIAG_KERNEL_instrumenter_OPTIONS)
      _attn_diag_kernel_library(${ARG_TARGET}_lockstep "${file_stem}.lockstep"
        "${ATTN_DIAG_KERNEL_instrumented_OPTIONS}" "${ARG_DEFINITIONS}")
    else()
      add_custom_target(${ARG_TARGET}_lockstep
        COMMAND ${CMAKE_COMMAND} -E echo "${file_stem}.lockstep.so is not built: there is no clang++ with llvm-dev")
    endif()
  endif()
  if(ATTN_DIAG_NVCC_VERSION)
    _attn_diag_cuda_library(${ARG_TARGET}_cuda "${file_stem}.cuda")
  endif()
endfunction()

# Compiles sources with the plugin, to objects for a target: whatever compiles the rest of the project. `arguments`
# is a file of further options, `language` c++ or c++-cpp-output. The objects go to the variable `objects`.
function(attn_diag_instrument target language arguments objects)
  set(launcher ${CMAKE_CXX_COMPILER_LAUNCHER})
  set(plugin ${ATTN_DIAG_KERNEL_plugin_OPTIONS})
  set(needed ${plugin})
  if(plugin STREQUAL "${ATTN_DIAG_INSTRUMENT_PLUGIN}")  # of this project
    list(APPEND needed attn_diag_instrument)
  endif()
  set(all "")
  foreach(source IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
    cmake_path(GET source FILENAME file)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${target}.${file}.o)
    list(APPEND all ${object})
    # Preprocessed text includes nothing: clang writes no list, and ninja would compile it each time for want of one.
    set(list_includes -MD -MF ${object}.d -MT ${object})
    set(depfile DEPFILE ${object}.d)
    if(language STREQUAL "c++-cpp-output")
      set(list_includes "")
      set(depfile "")
    endif()
    add_custom_command(
      OUTPUT ${object}
      COMMAND ${launcher} ${ATTN_DIAG_KERNEL_instrumenter_OPTIONS} -fpass-plugin=${plugin} @${arguments}
        -fPIC -x ${language} ${list_includes} -c ${source} -o ${object}
      DEPENDS ${source} ${arguments} ${needed}
      ${depfile}
      COMMENT "Instrumenting ${file} of ${target}"
      VERBATIM)
  endforeach()
  set(${objects} ${all} PARENT_SCOPE)
endfunction()

# One module, from the variables of attn_diag_add_kernel.
function(_attn_diag_kernel_library target file_name instrumentation definitions)
  set(build_info ${CMAKE_CURRENT_BINARY_DIR}/${target}.build_info.cc)
  set(translated "")
  foreach(source IN LISTS sources)
    cmake_path(GET source FILENAME file)
    list(APPEND translated ${CMAKE_CURRENT_BINARY_DIR}/${target}.${file}.ii)
  endforeach()
  set(arguments ${CMAKE_CURRENT_BINARY_DIR}/${target}.arguments)
  if(instrumentation)
    attn_diag_instrument(${target} c++-cpp-output ${arguments}.compile compiled ${translated})
    set_source_files_properties(${compiled} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
    set(compiler ${ATTN_DIAG_KERNEL_instrumenter_OPTIONS})
    # Users see it; where this machine has the plugin tells them nothing.
    cmake_path(GET ATTN_DIAG_KERNEL_plugin_OPTIONS FILENAME plugin_file)
    set(compiler_name "Clang with ${plugin_file}")
  else()
    # CMake itself says -xc++, which would preprocess a second time.
    set_source_files_properties(${translated} PROPERTIES
      LANGUAGE CXX COMPILE_OPTIONS "-xc++-cpp-output;$<$<CXX_COMPILER_ID:Clang>:-Wno-unused-command-line-argument>")
    set(compiled ${translated})
    set(compiler ${CMAKE_CXX_COMPILER})
    set(compiler_name "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
  endif()
  add_library(${target} MODULE ${compiled} ${build_info})
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
  if(TARGET attn_diag_flags AND NOT instrumentation)
    target_link_libraries(${target} PRIVATE attn_diag_flags)
  endif()
  target_compile_options(${target} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-O3>)
  if(NOT DEFINED ATTN_DIAG_NATIVE OR ATTN_DIAG_NATIVE)
    target_compile_options(${target} PRIVATE -march=native)
  endif()
  target_link_options(${target} PRIVATE -Wl,--build-id)

  # What the library is made of. The compiler itself says which headers each source includes.
  set(includes $<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>)
  set(defines $<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS>)
  set(defines "$<$<BOOL:${defines}>:-D$<JOIN:${defines}, -D>>")
  set(options "$<JOIN:$<TARGET_PROPERTY:${target},COMPILE_OPTIONS>, >")
  if(instrumentation)
    list(JOIN instrumentation " " instrumented)
    string(APPEND options " ${instrumented}")
  endif()
  string(TOUPPER "${CMAKE_BUILD_TYPE}" config)
  set(flags "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${config}} -std=c++20")
  list(JOIN ATTN_DIAG_KERNEL_preprocess_OPTIONS " " preprocess)
  string(APPEND preprocess " -D__CUDA_ARCH__=900")
  file(GENERATE OUTPUT ${arguments} CONTENT
    "${flags} ${options} ${defines} \"-I$<JOIN:${includes},\" \"-I>\" -xc++ ${preprocess}\n")
  if(instrumentation)
    file(GENERATE OUTPUT ${arguments}.compile CONTENT
      "${flags} ${options} -fvisibility=hidden -fvisibility-inlines-hidden\n")
  endif()
  set(header_lists "")
  foreach(source file_ii IN ZIP_LISTS sources translated)
    list(APPEND header_lists ${file_ii}.headers)
    cmake_path(GET source FILENAME file)
    add_custom_command(
      OUTPUT ${file_ii}
      COMMAND attn_diag::translate_source --output ${file_ii} --file ${source} --
        ${compiler} @${arguments} -MMD -MF ${file_ii}.d -MT ${file_ii} ${source}
      # A copy for hash_sources: ninja deletes what it has read.
      COMMAND ${CMAKE_COMMAND} -E copy ${file_ii}.d ${file_ii}.headers
      DEPENDS ${source} ${arguments} attn_diag::translate_source
      DEPFILE ${file_ii}.d
      COMMENT "Translating ${file} of ${file_name}.so"
      VERBATIM)
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
    COMMAND attn_diag::hash_sources --output ${build_info} --depfile ${build_info}.d --root ${ARG_ROOT}
      --compiler "${compiler_name}" --backend host
      --flags "${flags} ${options} ${defines}" ${fault} ${lockstep} ${header_lists}
    DEPENDS ${translated} ${arguments} attn_diag::hash_sources
    DEPFILE ${build_info}.d
    COMMENT "Hashing the sources of ${file_name}.so"
    VERBATIM)
endfunction()

# nvcc's options for a list of architectures, and what the library then holds code for:
# "sm_80 sm_90 compute_90".
function(_attn_diag_gencode architectures options_variable built_variable)
  set(options "")
  set(real "")
  set(virtual "")
  foreach(architecture IN LISTS architectures)
    if(NOT architecture MATCHES "^([0-9]+[af]?)(-real|-virtual)?$")
      message(FATAL_ERROR "CUDA architecture '${architecture}': expected a list as 80-real;90 (NN: code and PTX; NN-real: code; NN-virtual: PTX)")
    endif()
    set(number ${CMAKE_MATCH_1})
    if(NOT CMAKE_MATCH_2 STREQUAL "-virtual")
      list(APPEND options -gencode arch=compute_${number},code=sm_${number})
      list(APPEND real sm_${number})
    endif()
    if(NOT CMAKE_MATCH_2 STREQUAL "-real")
      list(APPEND options -gencode arch=compute_${number},code=compute_${number})
      list(APPEND virtual compute_${number})
    endif()
  endforeach()
  if(NOT options)
    message(FATAL_ERROR "There is no CUDA architecture to build for: set ATTN_DIAG_CUDA_ARCHITECTURES, or ATTN_DIAG_CUDA=OFF.")
  endif()
  list(JOIN real " " real)
  list(JOIN virtual " " virtual)
  string(STRIP "${real} ${virtual}" built)
  set(${options_variable} ${options} PARENT_SCOPE)
  set(${built_variable} ${built} PARENT_SCOPE)
endfunction()

# The library for GPUs, from the variables of attn_diag_add_kernel. Each has a CUDA runtime of its
# own, which it does not export, so that libraries of several toolkits can be loaded side by side.
function(_attn_diag_cuda_library target file_name)
  if(ARG_CUDA_ARCHITECTURES)
    _attn_diag_gencode("${ARG_CUDA_ARCHITECTURES}" gencode architectures)
  else()
    _attn_diag_gencode("${ATTN_DIAG_CUDA_ARCHITECTURES}" gencode architectures)
  endif()
  set(definitions ${ARG_DEFINITIONS})
  if(ARG_CUDA_DEFINITIONS)
    set(definitions ${ARG_CUDA_DEFINITIONS})
  endif()
  list(TRANSFORM definitions PREPEND -D)
  string(REPLACE "," "\\," definitions "${definitions}")  # nvcc cuts arguments at commas
  set(optimisation -O3)
  if(ATTN_DIAG_CUDA_QUICK AND ATTN_DIAG_NVCC_VERSION VERSION_GREATER_EQUAL 12.9)
    set(optimisation --Ofast-compile=max)
  endif()
  set(flags -std=c++20 ${optimisation} ${gencode} -Xcompiler=-Wall,-Wextra,-fPIC,-fvisibility=hidden
    ${ARG_CUDA_OPTIONS} ${definitions})
  if(ATTN_DIAG_WERROR)
    list(APPEND flags -Werror all-warnings)
  endif()
  set(includes ${ARG_INCLUDES})
  list(TRANSFORM includes PREPEND -I)
  set(contract $<TARGET_PROPERTY:attn_diag::contract,INTERFACE_INCLUDE_DIRECTORIES>)
  set(contract "-I$<JOIN:${contract},$<SEMICOLON>-I>")
  set(launcher ${CMAKE_CUDA_COMPILER_LAUNCHER})
  if(NOT launcher)
    set(launcher ${CMAKE_CXX_COMPILER_LAUNCHER})
  endif()

  set(objects "")
  set(list_headers "")
  set(header_lists "")
  foreach(source IN LISTS sources)
    cmake_path(GET source FILENAME file)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${target}.${file}.o)
    set(header_list ${CMAKE_CURRENT_BINARY_DIR}/${target}.${file}.d)
    list(APPEND objects ${object})
    list(APPEND header_lists ${header_list})
    list(APPEND list_headers
      COMMAND ${ATTN_DIAG_NVCC} -MM -MF ${header_list} ${flags} ${includes} "${contract}" ${source})
    add_custom_command(
      OUTPUT ${object}
      COMMAND ${launcher} ${ATTN_DIAG_NVCC} -c ${flags} ${includes} "${contract}" -MD -MF ${object}.d -o ${object}
        ${source}
      DEPENDS ${source} DEPFILE ${object}.d
      COMMENT "Compiling ${file} of ${file_name}.so for ${architectures}"
      COMMAND_EXPAND_LISTS VERBATIM)
  endforeach()

  set(build_info ${CMAKE_CURRENT_BINARY_DIR}/${target}.build_info.cc)
  set(fault "")
  if(ARG_FAULT)
    set(fault --fault ${ARG_FAULT})
  endif()
  cmake_path(GET ATTN_DIAG_NVCC PARENT_PATH toolkit)
  cmake_path(GET toolkit PARENT_PATH toolkit)
  list(JOIN flags " " flags_text)
  string(REPLACE "\\," "," flags_text "${flags_text}")
  add_custom_command(
    OUTPUT ${build_info}
    ${list_headers}
    COMMAND attn_diag::hash_sources --output ${build_info} --depfile ${build_info}.d --root ${ARG_ROOT}
      --exclude ${toolkit} --compiler "NVIDIA nvcc ${ATTN_DIAG_NVCC_VERSION}" --backend cuda
      --architectures ${architectures} --flags ${flags_text} ${fault} ${header_lists}
    DEPENDS ${sources} attn_diag::hash_sources
    DEPFILE ${build_info}.d
    COMMENT "Hashing the sources of ${file_name}.so"
    COMMAND_EXPAND_LISTS VERBATIM)

  set(directory ${CMAKE_BINARY_DIR})
  if(ATTN_DIAG_KERNEL_OUTPUT_DIRECTORY)
    set(directory ${ATTN_DIAG_KERNEL_OUTPUT_DIRECTORY})
  endif()
  file(MAKE_DIRECTORY ${directory})
  set(library ${directory}/${file_name}.so)
  add_custom_command(
    OUTPUT ${library}
    COMMAND ${ATTN_DIAG_NVCC} -shared -std=c++20 -O3 -cudart=static
      -Xcompiler=-fPIC,-fvisibility=hidden -Xlinker=--build-id,--exclude-libs=ALL "${contract}"
      -o ${library} ${build_info} ${objects}
    DEPENDS ${objects} ${build_info}
    COMMENT "Linking ${file_name}.so"
    COMMAND_EXPAND_LISTS VERBATIM)
  if(ARG_EXCLUDE_FROM_ALL)
    add_custom_target(${target} DEPENDS ${library})
  else()
    add_custom_target(${target} ALL DEPENDS ${library})
    # For whoever installs what this directory builds.
    set_property(DIRECTORY APPEND PROPERTY ATTN_DIAG_CUDA_LIBRARIES ${library})
  endif()
endfunction()
