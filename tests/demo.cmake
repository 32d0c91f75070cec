# How `make demo` compiles HiGHS: at -O1 instead of -O3, because the demo solves for less time than that saves.
set(CMAKE_C_FLAGS_RELEASE "-O1 -DNDEBUG" CACHE STRING "")
set(CMAKE_CXX_FLAGS_RELEASE "-O1 -DNDEBUG" CACHE STRING "")
# The compiler reads HiGHS's large headers once for twelve files.
set(CMAKE_UNITY_BUILD ON CACHE BOOL "")
set(CMAKE_UNITY_BUILD_BATCH_SIZE 12 CACHE STRING "")
# With such a file, the build of HiGHS's bindings leaves the choice of compilers to CMake, and HiGHS would prefer clang for C.
if(NOT DEFINED ENV{CC})
  set(CMAKE_C_COMPILER cc)
endif()
if(NOT DEFINED ENV{CXX})
  set(CMAKE_CXX_COMPILER c++)
endif()
