# What upstream calls from the Hexagon SDK's CMake code: build_idl.

include_guard(GLOBAL)

set(HEXSIM_QAIC ${CMAKE_CURRENT_LIST_DIR}/../../tools/qaic/bin/qaic)

# build_idl(path/NAME.idl target): NAME.h, NAME_stub.c and NAME_skel.c in the binary folder, made before
# anything of the target is compiled.
function(build_idl idl target)
    get_filename_component(source ${idl} ABSOLUTE)
    get_filename_component(name ${idl} NAME_WE)
    set(made ${CMAKE_CURRENT_BINARY_DIR}/${name})
    add_custom_command(
        OUTPUT ${made}.h ${made}_stub.c ${made}_skel.c
        COMMAND ${HEXSIM_QAIC} ${source} ${CMAKE_CURRENT_BINARY_DIR}
        DEPENDS ${source} ${HEXSIM_QAIC}
        COMMENT "qaic ${name}.idl"
        VERBATIM)
    add_custom_target(${target}-${name}-idl DEPENDS ${made}.h ${made}_stub.c ${made}_skel.c)
    add_dependencies(${target} ${target}-${name}-idl)
endfunction()
