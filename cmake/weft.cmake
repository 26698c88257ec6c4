# The headers that most sources include, parsed once: half of the time of a source goes into the standard library. The
# presets debug and fuzz do without, so that a source which leaves out an include is found.
set(WEFT_COMMON_HEADERS
  <algorithm> <array> <atomic> <chrono> <condition_variable> <cstddef> <cstdint> <cstring> <functional> <map> <memory>
  <mutex> <optional> <set> <span> <string> <string_view> <thread> <unordered_map> <unordered_set> <utility> <variant>
  <vector> <fmt/core.h>)

#   weft_common_headers(pch <doctest/doctest.h>)    an object library whose headers others reuse
function(weft_common_headers name)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/${name}.cc CONTENT "")  # leaves an equal file as it is
  add_library(weft_${name} OBJECT ${CMAKE_BINARY_DIR}/${name}.cc)
  target_link_libraries(weft_${name} PRIVATE ${WEFT_FMT})
  target_precompile_headers(weft_${name} PRIVATE ${WEFT_COMMON_HEADERS} ${ARGN})
endfunction()

# A test's own code runs once: to optimise it takes longer than to run it. The libraries that it tests are optimised.
function(weft_compile_quickly target)
  if(CMAKE_BUILD_TYPE STREQUAL "Release" OR WEFT_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
  endif()
endfunction()

if(WEFT_PCH)
  # ccache takes part only where it is told that a precompiled header says all that its sources say.
  if(CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
    add_compile_options($<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
  endif()
  weft_common_headers(pch)
  if(WEFT_TESTS)
    weft_common_headers(pch_tests <stdexcept> <doctest/doctest.h>)
    weft_compile_quickly(weft_pch_tests)
  endif()
endif()

# Sources of one target are compiled together, some at a time, where WEFT_UNITY says so: most of the time of a source
# goes into headers that its neighbours include too. Names in their anonymous namespaces must then differ.
function(weft_compile_together target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${WEFT_UNITY} UNITY_BUILD_BATCH_SIZE 8)
endfunction()

# One static library a folder; its arrows are its target_link_libraries.
#   weft_library(base result.cc …)             src/base -> target weft_base
function(weft_library name)
  add_library(weft_${name} STATIC ${ARGN})
  target_include_directories(weft_${name} PUBLIC ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
  weft_compile_together(weft_${name})
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
  weft_compile_quickly(weft_test_${name})
  if(WEFT_PCH)
    target_precompile_headers(weft_test_${name} REUSE_FROM weft_pch_tests)
  endif()
  add_test(NAME ${name} COMMAND weft_test_${name})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(WEFT_SANITIZE)
    math(EXPR ARG_TIMEOUT "6 * ${ARG_TIMEOUT}")
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT})
endfunction()
