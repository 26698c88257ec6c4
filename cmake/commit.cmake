# Writes OUT: the text of IN with the commit of the checkout SOURCE in the place of @WEFT_COMMIT@.
#   cmake -D SOURCE=DIR -D IN=FILE -D OUT=FILE -P cmake/commit.cmake
# The commit is "unknown" if SOURCE is not the top of a checkout, such as an unpacked tarball, or if Git is not installed.
execute_process(COMMAND git rev-parse --show-prefix --short=12 HEAD WORKING_DIRECTORY ${SOURCE}
                OUTPUT_VARIABLE answer RESULT_VARIABLE failed ERROR_QUIET)
set(WEFT_COMMIT unknown)
if(NOT failed AND answer MATCHES "^\n([0-9a-f]+)\n$")  # no prefix, and the commit
  set(WEFT_COMMIT ${CMAKE_MATCH_1})
endif()
configure_file(${IN} ${OUT} @ONLY)
file(TOUCH ${OUT})
