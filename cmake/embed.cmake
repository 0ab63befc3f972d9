# fxtap_embed(TARGET FILE SYMBOL): the bytes of FILE, NUL-terminated, as `const char SYMBOL[]` and their number without the
# NUL as `const size_t SYMBOL_bytes`, compiled into TARGET. Declare both `extern` where they are used. Run as a script
# (cmake -DINPUT= -DOUTPUT= -DSYMBOL= -P embed.cmake) this file writes the C source.
if(CMAKE_SCRIPT_MODE_FILE)
  file(READ ${INPUT} hex HEX)
  string(REGEX REPLACE "................................" "\\0\n" lines "${hex}")
  string(REGEX REPLACE "[0-9a-f][0-9a-f]" "'\\\\x\\0'," bytes "${lines}")
  get_filename_component(name ${INPUT} NAME)
  file(WRITE ${OUTPUT} "/* ${name} */\n#include <stddef.h>\n\nextern const char ${SYMBOL}[];\nextern const size_t ${SYMBOL}_bytes;\n"
    "const char ${SYMBOL}[] = {\n${bytes}0};\nconst size_t ${SYMBOL}_bytes = sizeof ${SYMBOL} - 1;\n")
  return()
endif()

set(FXTAP_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

function(fxtap_embed target file symbol)
  get_filename_component(input ${file} ABSOLUTE)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/embed/${symbol}.c)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DINPUT=${input} -DOUTPUT=${output} -DSYMBOL=${symbol} -P ${FXTAP_EMBED_SCRIPT}
    DEPENDS ${input} ${FXTAP_EMBED_SCRIPT} VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()
