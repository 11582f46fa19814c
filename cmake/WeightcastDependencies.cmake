# SPDX-License-Identifier: Apache-2.0
#
# Finds what the targets of the library need. Nothing is downloaded. A component whose library is
# missing is left out (AUTO), refused (ON) or not looked for (OFF).

find_package(Threads REQUIRED)

# weightcast_component(<name> <what it needs, for the message> <package> <arguments of find_package>...)
# sets WEIGHTCAST_HAS_<NAME>.
macro(weightcast_component name needs package)
    string(TOUPPER "${name}" _name)
    set(WEIGHTCAST_WITH_${_name} AUTO CACHE STRING "Component ${name}: AUTO, ON or OFF")
    set_property(CACHE WEIGHTCAST_WITH_${_name} PROPERTY STRINGS AUTO ON OFF)
    set(WEIGHTCAST_HAS_${_name} FALSE)
    if(WEIGHTCAST_WITH_${_name} STREQUAL "AUTO")
        find_package(${package} ${ARGN} QUIET)
    elseif(WEIGHTCAST_WITH_${_name})
        find_package(${package} ${ARGN} REQUIRED)
    endif()
    if(${package}_FOUND AND (WEIGHTCAST_WITH_${_name} STREQUAL "AUTO" OR WEIGHTCAST_WITH_${_name}))
        set(WEIGHTCAST_HAS_${_name} TRUE)
    elseif(PROJECT_IS_TOP_LEVEL)
        message(STATUS "weightcast::${name} is left out: it needs ${needs}")
    endif()
endmacro()

weightcast_component(weightcast "range-v3 0.12" range-v3 CONFIG)
weightcast_component(io "Boost.JSON 1.81" Boost 1.81 CONFIG COMPONENTS json)
weightcast_component(gloo "Gloo" Gloo CONFIG)
