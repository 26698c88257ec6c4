# What most sources include, parsed once: it takes a fifth off a first build. Off elsewhere, so that a source which leaves
# out an include is found, and because ccache keeps nothing that was compiled so.
if(WEFT_PCH)
  file(WRITE ${CMAKE_BINARY_DIR}/pch.cc "")
  add_library(weft_pch OBJECT ${CMAKE_BINARY_DIR}/pch.cc)
  target_link_libraries(weft_pch PRIVATE fmt::fmt)
  target_precompile_headers(weft_pch PRIVATE
    <algorithm> <array> <atomic> <cstddef> <cstdint> <cstring> <functional> <map> <memory> <mutex> <optional> <span>
    <string> <string_view> <unordered_map> <unordered_set> <utility> <variant> <vector> <fmt/core.h>)
endif()

# One static library a folder; its arrows are its target_link_libraries.
#   weft_library(base result.cc …)             src/base -> target weft_base
function(weft_library name)
  add_library(weft_${name} STATIC ${ARGN})
  target_include_directories(weft_${name} PUBLIC ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
  if(WEFT_PCH)
    target_precompile_headers(weft_${name} REUSE_FROM weft_pch)
  endif()
endfunction()

# FlatBuffers: SCHEMA.fbs beside the caller -> SCHEMA_generated.h in the build tree, for this target alone.
function(weft_schema target schema)
  get_filename_component(stem ${schema} NAME_WE)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/generated)
  add_custom_command(
    OUTPUT ${out}/${stem}_generated.h
    COMMAND ${FLATC} --cpp --cpp-std c++17 --scoped-enums --warnings-as-errors -I ${CMAKE_SOURCE_DIR}/src -o ${out} ${CMAKE_CURRENT_SOURCE_DIR}/${schema}
    DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${schema}
    VERBATIM)
  target_sources(${target} PRIVATE ${out}/${stem}_generated.h)
  target_include_directories(${target} SYSTEM PUBLIC ${out})
endfunction()

#   weft_test(unit_base LIBS weft_base SOURCES a.cc b.cc)   a doctest executable and a ctest entry
function(weft_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "LIBS;SOURCES" ${ARGN})
  add_executable(weft_test_${name} ${ARG_SOURCES} $<TARGET_OBJECTS:weft_doctest_main>)
  target_link_libraries(weft_test_${name} PRIVATE ${ARG_LIBS} weft_testing)
  add_test(NAME ${name} COMMAND weft_test_${name})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT})
endfunction()
