# Warnings and sanitisers, for every target that links fxtap_flags.
add_library(fxtap_flags INTERFACE)
target_compile_options(fxtap_flags INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wvla $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes> $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes>)
if(FXTAP_WERROR)
  target_compile_options(fxtap_flags INTERFACE -Werror)
endif()
target_compile_definitions(fxtap_flags INTERFACE _GNU_SOURCE _FILE_OFFSET_BITS=64)
if(FXTAP_SANITIZE)
  target_compile_options(fxtap_flags INTERFACE -fsanitize=${FXTAP_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all -g)
  target_link_options(fxtap_flags INTERFACE -fsanitize=${FXTAP_SANITIZE})
endif()
if(FXTAP_FUZZ) # coverage of the library guides libFuzzer
  target_compile_options(fxtap_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
