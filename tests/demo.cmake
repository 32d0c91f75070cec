# How `make demo` compiles HiGHS: at -O1 instead of -O3, because the demo solves for less time than that saves.
set(CMAKE_C_FLAGS_RELEASE "-O1 -DNDEBUG" CACHE STRING "")
set(CMAKE_CXX_FLAGS_RELEASE "-O1 -DNDEBUG" CACHE STRING "")
include("${CMAKE_CURRENT_LIST_DIR}/highs.cmake")
