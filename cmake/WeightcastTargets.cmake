# SPDX-License-Identifier: Apache-2.0
#
# The library's targets. Each header belongs to exactly one of them, by its path:
#   weightcast::core        the standard library and threads only (all that nvcc can read too)
#   weightcast::weightcast  adds model, plan, engine, session: range-v3
#   weightcast::io          safetensors: Boost.JSON
#   weightcast::gloo        the communicator over Gloo

file(
    GLOB_RECURSE _weightcast_headers
    CONFIGURE_DEPENDS
    RELATIVE "${PROJECT_SOURCE_DIR}/include"
    "${PROJECT_SOURCE_DIR}/include/weightcast/*.hpp"
    "${PROJECT_SOURCE_DIR}/include/weightcast/*.cuh"
)
list(SORT _weightcast_headers)

set(WEIGHTCAST_HEADERS_CORE "")
set(WEIGHTCAST_HEADERS_WEIGHTCAST "")
set(WEIGHTCAST_HEADERS_IO "")
set(WEIGHTCAST_HEADERS_GLOO "")
foreach(_header IN LISTS _weightcast_headers)
    if(_header MATCHES "^weightcast/[a-z]+/concepts\\.hpp$")
        list(APPEND WEIGHTCAST_HEADERS_CORE "${_header}")
    elseif(_header MATCHES "^weightcast/comm/(detail/)?gloo")
        list(APPEND WEIGHTCAST_HEADERS_GLOO "${_header}")
    elseif(_header MATCHES "^weightcast/io(/|\\.hpp)")
        list(APPEND WEIGHTCAST_HEADERS_IO "${_header}")
    elseif(_header MATCHES "^weightcast/(model|plan|engine|session|weightcast)(/|\\.hpp)")
        list(APPEND WEIGHTCAST_HEADERS_WEIGHTCAST "${_header}")
    else()
        list(APPEND WEIGHTCAST_HEADERS_CORE "${_header}")
    endif()
endforeach()

set(WEIGHTCAST_TARGETS "")

# weightcast_library(<name> <libraries it needs>...)
function(weightcast_library name)
    string(TOUPPER "${name}" upper)
    set(target weightcast_${name})
    add_library(${target} INTERFACE)
    add_library(weightcast::${name} ALIAS ${target})
    list(TRANSFORM WEIGHTCAST_HEADERS_${upper} PREPEND "${PROJECT_SOURCE_DIR}/include/")
    target_sources(
        ${target}
        INTERFACE FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/include" FILES ${WEIGHTCAST_HEADERS_${upper}}
    )
    target_link_libraries(${target} INTERFACE ${ARGN})
    set_target_properties(
        ${target}
        PROPERTIES EXPORT_NAME ${name} VERIFY_INTERFACE_HEADER_SETS ${PROJECT_IS_TOP_LEVEL}
    )
    set(WEIGHTCAST_TARGETS ${WEIGHTCAST_TARGETS} ${name} PARENT_SCOPE)
endfunction()

weightcast_library(core Threads::Threads)
target_compile_features(weightcast_core INTERFACE cxx_std_20)

if(WEIGHTCAST_HAS_WEIGHTCAST)
    weightcast_library(weightcast weightcast::core range-v3::range-v3)
endif()
if(WEIGHTCAST_HAS_IO)
    weightcast_library(io weightcast::core Boost::json)
endif()
if(WEIGHTCAST_HAS_GLOO)
    weightcast_library(gloo weightcast::core gloo)
endif()
