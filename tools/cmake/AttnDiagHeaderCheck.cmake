# attn_diag_check_headers(): an object library, built by name, in which every public header is compiled alone and twice
# included; tools/check_includes reads its sources, too. A header that leans on another's includes, or that has
# no include guard, fails the build with its name.
function(attn_diag_check_headers)
  set(roots kernels/include reference/include harness/include harness/host/include
      harness/host/torch_include)
  set(sources "")
  foreach(root IN LISTS roots)
    file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/${root}
         ${PROJECT_SOURCE_DIR}/${root}/*.h)
    foreach(header IN LISTS headers)
      file(STRINGS ${PROJECT_SOURCE_DIR}/${root}/${header} refusal REGEX "^#error" LIMIT_COUNT 1)
      if(refusal)
        continue()  # a stand-in for what the host executor has not
      endif()
      string(MAKE_C_IDENTIFIER ${header} stem)
      set(source ${PROJECT_BINARY_DIR}/header_check/${stem}.cc)
      set(text "#include <${header}>\n#include <${header}>\n// ${root}/${header}\n")
      if(EXISTS ${source})
        file(READ ${source} present)
      else()
        set(present "")
      endif()
      if(NOT present STREQUAL text)
        file(WRITE ${source} ${text})
      endif()
      list(APPEND sources ${source})
    endforeach()
  endforeach()
  add_library(attn_diag_header_check OBJECT EXCLUDE_FROM_ALL ${sources})
  target_compile_options(attn_diag_header_check PRIVATE -O0)
  target_include_directories(attn_diag_header_check PRIVATE
    ${PROJECT_SOURCE_DIR}/harness/host/torch_include)
  target_link_libraries(attn_diag_header_check PRIVATE
    attn_diag_contract attn_diag_reference attn_diag_harness attn_diag_host_cuda attn_diag_test_main
    attn_diag_flags)
endfunction()
