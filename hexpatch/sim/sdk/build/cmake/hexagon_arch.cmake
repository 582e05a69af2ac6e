# HEXAGON_ARCH (v73, ...) from the DSP_VERSION that upstream's host side passes.

if (DEFINED DSP_VERSION)
    set(HEXAGON_ARCH ${DSP_VERSION})
    set(ENV{HEXSIM_DSP_VERSION} ${DSP_VERSION})
elseif (DEFINED ENV{HEXSIM_DSP_VERSION})
    # try_compile reads the toolchain file again, without our variables
    set(HEXAGON_ARCH $ENV{HEXSIM_DSP_VERSION})
else()
    set(HEXAGON_ARCH v73)
endif()

set(V_ARCH ${HEXAGON_ARCH})
set(V_ARCH_EXTN "")
