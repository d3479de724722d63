# lib/attn_diag/kernel_build.conf of the build tree, whose paths lead to the sources, and that of an
# installed tree, whose paths are relative to itself.
include(AttnDiagInstrument)

function(_attn_diag_write_kernel_build_conf file plugin)
  set(instrumenter "")
  if(ATTN_DIAG_CLANG)
    cmake_path(REPLACE_FILENAME plugin watch.so OUTPUT_VARIABLE watch_plugin)
    cmake_path(REPLACE_FILENAME plugin leave_out.so OUTPUT_VARIABLE leave_out_plugin)
    set(instrumenter "instrumenter ${ATTN_DIAG_CLANG}\nplugin ${plugin}\nwatch-plugin ${watch_plugin}")
    string(APPEND instrumenter "\nleave-out-plugin ${leave_out_plugin}")
  endif()
  configure_file(${PROJECT_SOURCE_DIR}/harness/toolchain/build/kernel_build.conf.in ${file} @ONLY)
endfunction()

set(library_name libattn_diag_host_executor.so)
set(executor ${PROJECT_BINARY_DIR}/lib/${library_name})
set(stand_in_headers ${PROJECT_SOURCE_DIR}/harness/host/include)
set(torch_headers ${PROJECT_SOURCE_DIR}/harness/host/torch_include)
set(contract_headers ${PROJECT_SOURCE_DIR}/kernels/include)
_attn_diag_write_kernel_build_conf(${PROJECT_BINARY_DIR}/lib/attn_diag/kernel_build.conf
  "${ATTN_DIAG_INSTRUMENT_PLUGIN}")
set(ATTN_DIAG_KERNEL_BUILD_CONF ${PROJECT_BINARY_DIR}/lib/attn_diag/kernel_build.conf)

set(conf_dir /prefix/lib/attn_diag)
file(RELATIVE_PATH executor ${conf_dir} /prefix/${CMAKE_INSTALL_LIBDIR}/${library_name})
file(RELATIVE_PATH stand_in_headers ${conf_dir} /prefix/${CMAKE_INSTALL_INCLUDEDIR}/attn_diag_host_cuda)
file(RELATIVE_PATH torch_headers ${conf_dir} /prefix/${CMAKE_INSTALL_INCLUDEDIR}/attn_diag_torch)
file(RELATIVE_PATH contract_headers ${conf_dir} /prefix/${CMAKE_INSTALL_INCLUDEDIR})
cmake_path(GET ATTN_DIAG_INSTRUMENT_PLUGIN FILENAME plugin_name)
_attn_diag_write_kernel_build_conf(${PROJECT_BINARY_DIR}/installed/kernel_build.conf "${plugin_name}")
install(FILES ${PROJECT_BINARY_DIR}/installed/kernel_build.conf DESTINATION lib/attn_diag)
