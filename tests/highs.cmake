# How every build compiles HiGHS: the compiler reads HiGHS's large headers once for twelve files.
set(CMAKE_UNITY_BUILD ON CACHE BOOL "")
set(CMAKE_UNITY_BUILD_BATCH_SIZE 12 CACHE STRING "")
# With a toolchain file, the build of HiGHS's bindings leaves the choice of compilers to CMake, and HiGHS would prefer clang for C.
if(NOT DEFINED ENV{CC})
  set(CMAKE_C_COMPILER cc)
endif()
if(NOT DEFINED ENV{CXX})
  set(CMAKE_CXX_COMPILER c++)
endif()
# What the simplex method does not run through is compiled at -O1.
set(CMAKE_CXX_COMPILER_LAUNCHER sh "${CMAKE_CURRENT_LIST_DIR}/highs-compiler.sh" CACHE STRING "")
