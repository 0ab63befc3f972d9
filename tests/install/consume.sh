#!/bin/sh
# consume.sh CMAKE CC SOURCE_DIR BUILD_DIR: install the library below BUILD_DIR, move it, and build examples/mlp.c against it
# as others would: by pkg-config and by find_package, shared and static. Each program's dump is read by the installed fxtap.
set -eu
cmake=$1 cc=$2 source=$3 work=$4/tests/install
rm -rf "$work"
mkdir -p "$work"
"$cmake" --install "$4" --prefix "$work/first" >"$work/log"
mv "$work/first" "$work/prefix" # nothing may remember where it was installed
prefix=$work/prefix
library=$(dirname "$(find "$prefix" -name libfxtap.a)")
export LD_LIBRARY_PATH="$library"

try() { # PROGRAM: it leaves a whole dump
    "$1" "$1.dump" 2 >>"$work/log"
    "$prefix/bin/fxtap" check "$1.dump" >>"$work/log"
}

if command -v pkg-config >/dev/null 2>&1; then
    export PKG_CONFIG_PATH="$library/pkgconfig"
    # The flags are words, and no path here has a blank: they split.
    "$cc" "$source/examples/mlp.c" -o "$work/pc_shared" $(pkg-config --cflags --libs fxtap)
    "$cc" "$source/examples/mlp.c" -o "$work/pc_static" $(pkg-config --cflags fxtap) "$library/libfxtap.a" \
        $(pkg-config --static --libs fxtap | sed 's/-lfxtap//')
    try "$work/pc_shared"
    try "$work/pc_static"
    # The manual page's example.
    sed -n '/^\.EX/,/^\.EE/{/^\./d;s/\\-/-/g;s/\\e/\\/g;p}' "$source/docs/man/libfxtap.3" >"$work/man.c"
    "$cc" -Wall -Werror "$work/man.c" -o "$work/man" $(pkg-config --cflags --libs fxtap)
    "$work/man" "$work/pc_shared.dump" | grep -q "^_softmax-aten._softmax.default.OUTPUT.0 "
fi

mkdir "$work/project"
cat >"$work/project/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(engine LANGUAGES C)
find_package(fxtap 0.1 REQUIRED)
foreach(kind fxtap fxtap_static)
  add_executable(cmake_\${kind} $source/examples/mlp.c)
  target_link_libraries(cmake_\${kind} PRIVATE fxtap::\${kind} m)
endforeach()
END
"$cmake" -S "$work/project" -B "$work/project/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc" >>"$work/log"
"$cmake" --build "$work/project/build" >>"$work/log"
try "$work/project/build/cmake_fxtap"
try "$work/project/build/cmake_fxtap_static"

if grep -rlF "$4" "$prefix" --include='*.cmake' --include='*.pc'; then
    echo "consume.sh: the files above name the build folder" >&2
    exit 1
fi
