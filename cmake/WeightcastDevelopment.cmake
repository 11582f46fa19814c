# SPDX-License-Identifier: Apache-2.0
#
# How our own tests and programs are compiled. Users of the library never see this file.

if(NOT WEIGHTCAST_HAS_WEIGHTCAST OR NOT WEIGHTCAST_HAS_IO OR NOT WEIGHTCAST_HAS_GLOO)
    message(
        FATAL_ERROR
        "The tests and programs of weightcast need range-v3, Boost.JSON and Gloo. "
        "Run ./dev install-deps, or set WEIGHTCAST_BUILD_TESTS, _TOOLS, _BENCHMARKS and _EXAMPLES to OFF."
    )
endif()

set(WEIGHTCAST_SANITIZER "" CACHE STRING "Sanitizer of our own programs: empty, address or thread")
set_property(CACHE WEIGHTCAST_SANITIZER PROPERTY STRINGS "" address thread)

if(PROJECT_IS_TOP_LEVEL AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
    find_program(WEIGHTCAST_CCACHE ccache)
    mark_as_advanced(WEIGHTCAST_CCACHE)
    if(WEIGHTCAST_CCACHE)
        # Paths are hashed relative to the source tree, so that another checkout of it finds the same results.
        set(CMAKE_CXX_COMPILER_LAUNCHER
            "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros
            "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=true "${WEIGHTCAST_CCACHE}"
        )
    endif()
endif()

set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_library(weightcast_development INTERFACE)
target_compile_options(
    weightcast_development
    INTERFACE
        -Wall
        -Wextra
        -Wpedantic
        -Wshadow
        -Wconversion
        -Wno-sign-conversion # clang's -Wconversion includes it, g++'s does not
        -Wnon-virtual-dtor
        $<$<BOOL:${WEIGHTCAST_WERROR}>:-Werror>
        # g++ 12 reports what is not there for inlined string operations (GCC bug 105651) ...
        $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-array-bounds>
        # ... and its sanitizer instrumentation confuses its flow analysis.
        $<$<AND:$<CXX_COMPILER_ID:GNU>,$<BOOL:${WEIGHTCAST_SANITIZER}>>:-Wno-maybe-uninitialized;-Wno-stringop-overflow>
        # lets ccache handle precompiled headers
        $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>
)
if(WEIGHTCAST_SANITIZER STREQUAL "address")
    set(_weightcast_sanitizer -fsanitize=address,undefined -fno-sanitize-recover=all)
elseif(WEIGHTCAST_SANITIZER STREQUAL "thread")
    set(_weightcast_sanitizer -fsanitize=thread)
elseif(WEIGHTCAST_SANITIZER)
    message(FATAL_ERROR "WEIGHTCAST_SANITIZER is '${WEIGHTCAST_SANITIZER}': expected nothing, address or thread")
endif()
if(WEIGHTCAST_SANITIZER)
    target_compile_options(weightcast_development INTERFACE ${_weightcast_sanitizer} -fno-omit-frame-pointer)
    target_link_options(weightcast_development INTERFACE ${_weightcast_sanitizer})
endif()
