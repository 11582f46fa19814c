# SPDX-License-Identifier: Apache-2.0
#
# Installs the headers, the CMake package and the pkg-config files, all as component `weightcast`.
# meson.build installs the same headers and .pc files; tests/package compares the two.

include(CMakePackageConfigHelpers)

set(_weightcast_cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/weightcast")

# weightcast_install(<name> PC <pkg-config name> DESCRIPTION <text> [REQUIRES <modules>] [LIBS <flags>])
function(weightcast_install name)
    cmake_parse_arguments(PARSE_ARGV 1 ARG "" "PC;DESCRIPTION;REQUIRES;LIBS" "")
    if(NOT TARGET weightcast_${name})
        return()
    endif()
    install(
        TARGETS weightcast_${name}
        EXPORT weightcast-${name}
        FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT weightcast
        INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
    )
    install(
        EXPORT weightcast-${name}
        FILE weightcast-${name}-targets.cmake
        NAMESPACE weightcast::
        DESTINATION "${_weightcast_cmake_dir}"
        COMPONENT weightcast
    )
    # The prefix is told from where the .pc file lies, so that the installed tree may be moved.
    set(prefix "${CMAKE_INSTALL_PREFIX}")
    set(includedir "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
    if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" AND NOT IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
        file(RELATIVE_PATH prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
        string(REGEX REPLACE "/$" "" prefix "\${pcfiledir}/${prefix}")
        set(includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
    endif()
    configure_file("${PROJECT_SOURCE_DIR}/cmake/weightcast.pc.in" "${PROJECT_BINARY_DIR}/${ARG_PC}.pc" @ONLY)
    install(
        FILES "${PROJECT_BINARY_DIR}/${ARG_PC}.pc"
        DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig"
        COMPONENT weightcast
    )
endfunction()

weightcast_install(core PC weightcast-core DESCRIPTION "${PROJECT_DESCRIPTION}: the part that needs only the standard library" LIBS "-pthread")
weightcast_install(weightcast PC weightcast DESCRIPTION "${PROJECT_DESCRIPTION}" REQUIRES "weightcast-core")
weightcast_install(io PC weightcast-io DESCRIPTION "${PROJECT_DESCRIPTION}: safetensors files" REQUIRES "weightcast-core" LIBS "-lboost_json")
weightcast_install(gloo PC weightcast-gloo DESCRIPTION "${PROJECT_DESCRIPTION}: the Gloo communicator" REQUIRES "weightcast-core" LIBS "-lgloo")

configure_package_config_file(
    "${PROJECT_SOURCE_DIR}/cmake/weightcast-config.cmake.in"
    "${PROJECT_BINARY_DIR}/weightcast-config.cmake"
    INSTALL_DESTINATION "${_weightcast_cmake_dir}"
    NO_SET_AND_CHECK_MACRO
)
write_basic_package_version_file(
    "${PROJECT_BINARY_DIR}/weightcast-config-version.cmake"
    COMPATIBILITY SameMinorVersion
    ARCH_INDEPENDENT
)
install(
    FILES "${PROJECT_BINARY_DIR}/weightcast-config.cmake" "${PROJECT_BINARY_DIR}/weightcast-config-version.cmake"
    DESTINATION "${_weightcast_cmake_dir}"
    COMPONENT weightcast
)
