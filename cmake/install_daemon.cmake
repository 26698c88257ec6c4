# Runs at `cmake --install`, with the variables that cmake/install.cmake sets and the final CMAKE_INSTALL_PREFIX.
get_filename_component(WEFT_BINDIR "${bin}" ABSOLUTE BASE_DIR "${CMAKE_INSTALL_PREFIX}")
get_filename_component(WEFT_SBINDIR "${sbin}" ABSOLUTE BASE_DIR "${CMAKE_INSTALL_PREFIX}")
get_filename_component(sysconf "${etc}" ABSOLUTE BASE_DIR "${CMAKE_INSTALL_PREFIX}")
if(sysconf STREQUAL "/usr/etc")
  set(sysconf /etc)
endif()

foreach(service weftd weft-scrub)
  configure_file(${units}/${service}.service.in ${configured}/${service}.service @ONLY)
  file(INSTALL ${configured}/${service}.service DESTINATION ${CMAKE_INSTALL_PREFIX}/lib/systemd/system)
endforeach()
file(INSTALL ${example} DESTINATION ${sysconf}/weft)
