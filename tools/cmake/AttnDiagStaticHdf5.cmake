# ATTN_DIAG_STATIC_HDF5: makes hdf5::hdf5 and hdf5::hdf5_hl the static libraries beside the shared ones
# that were found, so that a program carries HDF5 in itself.
#
# FindHDF5's own static mode asks for all that Debian's HDF5 was configured with: libcurl and libcrypto,
# and with them thirty more. Those serve the S3 reader alone, whose objects nothing of ours pulls out of
# the archive; what is left is szip and zlib.
foreach(library IN ITEMS hdf5 hdf5_hl)
  set(shared ${HDF5_C_LIBRARY_${library}})
  string(REGEX REPLACE "\\.so$" ".a" static "${shared}")
  if(NOT EXISTS "${static}" OR NOT static MATCHES "\\.a$")
    message(FATAL_ERROR "ATTN_DIAG_STATIC_HDF5: there is no static library beside '${shared}'.")
  endif()
  set_target_properties(hdf5::${library} PROPERTIES IMPORTED_LOCATION ${static})
endforeach()
foreach(library IN ITEMS sz aec z)
  find_library(ATTN_DIAG_STATIC_${library} NAMES lib${library}.a REQUIRED)
  list(APPEND compression ${ATTN_DIAG_STATIC_${library}})
endforeach()
set_target_properties(hdf5::hdf5 PROPERTIES INTERFACE_LINK_LIBRARIES "${compression};${CMAKE_DL_LIBS};m")
set_target_properties(hdf5::hdf5_hl PROPERTIES INTERFACE_LINK_LIBRARIES "hdf5::hdf5")
