# Runs at `cmake --install`, with the variables that weft_install_compressed() sets and the final CMAKE_INSTALL_PREFIX.
get_filename_component(destination "${directory}" ABSOLUTE BASE_DIR "${CMAKE_INSTALL_PREFIX}")
get_filename_component(name "${file}" NAME)
# Without the file's name and time, so that equal texts are equal files.
execute_process(COMMAND gzip -9nc "${file}" OUTPUT_FILE "${work}/${name}.gz" RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "gzip ${file}: ${failed}")
endif()
file(INSTALL "${work}/${name}.gz" DESTINATION "${destination}"
     PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
