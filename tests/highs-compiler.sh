#!/bin/sh
# Runs a compiler for HiGHS: `highs-compiler.sh COMPILER ARGUMENT...`, with the source at the end, as CMake calls it.
#
# Poolwright uses HiGHS's simplex method without presolve. Other parts take three quarters of the time to compile HiGHS, and hardly
# run: they are compiled at -O1. What the simplex method runs through keeps its -O3.
for source; do :; done
case $source in
*/highs.dir/Unity/*.cxx)
    # It includes twelve files of HiGHS.
    grep -q -e /highs/simplex/ -e /highs/util/ -e /highs/lp_data/HighsLpUtils.cpp "$source" || set -- "$@" -O1
    ;;
esac
exec "$@"
