#!/bin/sh
# compile.sh CC INCLUDE_DIR HEADER: the header stands alone as C11, and as C++ where there is a C++ compiler.
set -eu
echo "#include \"$3\"" | "$1" -std=c11 -Wall -Wextra -Werror -pedantic -I "$2" -x c -fsyntax-only -
if command -v g++ >/dev/null 2>&1; then
    echo "#include \"$3\"" | g++ -std=c++17 -Wall -Wextra -Werror -I "$2" -x c++ -fsyntax-only -
fi
