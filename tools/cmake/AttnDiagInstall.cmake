# Installs the command, the kernels and the CMake package, and exports the package from the build tree
# too: both have lib/cmake/attn_diag/attn_diag-config.cmake.
#
#   bin/attn-diag                         the command
#   lib/attn_diag/kernels/*.so            kernel libraries, found by the command as ../lib/attn_diag/kernels
#   lib/attn_diag/attn_diag_{hash_sources,translate_source}  build-time tools of attn_diag_add_kernel()
#   lib/attn_diag/kernel_build.conf       how kernels are compiled, for it and for `attn-diag build`
#   <libdir>/libattn_diag_*.{so,a}        host executor, reference, harness
#   include/attn_diag/...                 public headers
#   include/attn_diag/stand_in/...        the host executor's cuda_runtime.h etc.; not on the default path
#   include/attn_diag_torch/...           a stand-in for PyTorch's headers, for `attn-diag build`
#   lib/cmake/attn_diag                   package and attn_diag_add_kernel()
#   share/attn_diag/kernels               sources of the kernels, to start from
#   share/man/man1/attn-diag.1            the manual
#   share/{bash-completion/completions,zsh/site-functions,fish/vendor_completions.d}  completions
#   share/attn_diag/d3.min.js             the distribution's, with which `attn-diag report` draws its page
include(CMakePackageConfigHelpers)

set(package_dir lib/cmake/attn_diag)
set(kernel_dir lib/attn_diag/kernels)

# Where a target looks for the executor, relative to itself, so that an installed tree can be moved.
function(attn_diag_relative_rpath target from)
  file(RELATIVE_PATH path /prefix/${from} /prefix/${CMAKE_INSTALL_LIBDIR})
  set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN/${path}")
endfunction()

set_target_properties(attn_diag_host_executor PROPERTIES
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
get_property(rooms GLOBAL PROPERTY ATTN_DIAG_ROOMS)
install(TARGETS attn_diag_contract attn_diag_host_executor attn_diag_host_cuda attn_diag_reference
                attn_diag_adapt ${rooms} attn_diag_harness attn_diag_kernel_build attn_diag_report attn_diag_source
  EXPORT attn_diag
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS attn_diag_hash_sources attn_diag_translate_source EXPORT attn_diag RUNTIME DESTINATION lib/attn_diag)

attn_diag_relative_rpath(attn-diag ${CMAKE_INSTALL_BINDIR})
install(TARGETS attn-diag RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
set(made ${PROJECT_BINARY_DIR}/tools/attn_diag/made)
install(FILES ${made}/man DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 RENAME attn-diag.1)
install(FILES ${made}/bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME attn-diag)
install(FILES ${made}/zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _attn-diag)
install(FILES ${made}/fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d RENAME attn-diag.fish)

get_property(kernel_targets DIRECTORY ${PROJECT_SOURCE_DIR}/kernels PROPERTY BUILDSYSTEM_TARGETS)
foreach(target IN LISTS kernel_targets)
  get_target_property(type ${target} TYPE)
  get_target_property(excluded ${target} EXCLUDE_FROM_ALL)
  if(type STREQUAL MODULE_LIBRARY AND NOT excluded)
    attn_diag_relative_rpath(${target} ${kernel_dir})
    install(TARGETS ${target} LIBRARY DESTINATION ${kernel_dir})
  endif()
endforeach()

get_property(cuda_libraries DIRECTORY ${PROJECT_SOURCE_DIR}/kernels PROPERTY ATTN_DIAG_CUDA_LIBRARIES)
install(PROGRAMS ${cuda_libraries} DESTINATION ${kernel_dir})

foreach(folder IN ITEMS kernels reference harness)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder}/include/attn_diag
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN *.h)
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/harness/host/include/
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/attn_diag_host_cuda)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/harness/host/torch_include/
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/attn_diag_torch)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/kernels/ DESTINATION share/attn_diag/kernels
  PATTERN "*_test.*" EXCLUDE PATTERN machine_code_test EXCLUDE PATTERN testing EXCLUDE)

# Else the command says what to install.
set(attn_diag_d3 /usr/share/nodejs/d3/dist/d3.min.js)
if(EXISTS ${attn_diag_d3})
  install(FILES ${attn_diag_d3} DESTINATION share/attn_diag)
endif()

write_basic_package_version_file(${PROJECT_BINARY_DIR}/${package_dir}/attn_diag-config-version.cmake
  COMPATIBILITY SameMinorVersion)
set(cuda_dependency "")
if(TARGET CUDA::cudart_static)  # which the harness links
  set(cuda_dependency "find_dependency(CUDAToolkit ${CUDAToolkit_VERSION_MAJOR})\n")
endif()
# The libraries of the build tree name what they are compiled with, too.
set(build_tree_dependencies "find_dependency(Eigen3 NO_MODULE)\n")
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/attn_diag-config.cmake.in
  ${PROJECT_BINARY_DIR}/${package_dir}/attn_diag-config.cmake
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
set(build_tree_dependencies "")
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/attn_diag-config.cmake.in
  ${PROJECT_BINARY_DIR}/installed/attn_diag-config.cmake
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
configure_file(${CMAKE_CURRENT_LIST_DIR}/AttnDiagAddKernel.cmake
  ${PROJECT_BINARY_DIR}/${package_dir}/AttnDiagAddKernel.cmake COPYONLY)
install(FILES
  ${PROJECT_BINARY_DIR}/installed/attn_diag-config.cmake
  ${PROJECT_BINARY_DIR}/${package_dir}/attn_diag-config-version.cmake
  ${CMAKE_CURRENT_LIST_DIR}/AttnDiagAddKernel.cmake
  DESTINATION ${package_dir})
install(EXPORT attn_diag NAMESPACE attn_diag:: FILE attn_diag-targets.cmake DESTINATION ${package_dir})
# The build tree's libraries name these two; they are of no use to others and are not installed.
set_target_properties(attn_diag_flags PROPERTIES EXPORT_NAME build_flags)
set_target_properties(attn_diag_native PROPERTIES EXPORT_NAME build_native)
export(TARGETS attn_diag_contract attn_diag_host_executor attn_diag_host_cuda attn_diag_reference
               attn_diag_adapt ${rooms} attn_diag_harness attn_diag_kernel_build attn_diag_report attn_diag_source
               attn_diag_hash_sources attn_diag_translate_source
               attn_diag_flags attn_diag_native
  NAMESPACE attn_diag:: FILE ${PROJECT_BINARY_DIR}/${package_dir}/attn_diag-targets.cmake)
