/* fuzz_name.c - names of files and folders of a dump: parts are within the name, stamps and order are consistent. */
#include <stdlib.h>
#include <string.h>

#include "index/file_names.h"
#include "index/parse_file_name.h"

static void check(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void check_parts(const char *name, size_t length)
{
    fx_name parsed;
    if (!fx_name_parse(name, length, &parsed)) {
        return;
    }
    check(parsed.node_length > 0 && parsed.node_length <= parsed.stem_length);
    check(parsed.target_offset + parsed.target_length == parsed.stem_length);
    check(parsed.stem_length < parsed.position_offset && parsed.position_length > 0);
    check(parsed.position_offset + parsed.position_length == parsed.name_length);
    check(parsed.name_length + 25 == length);
    char digits[20];
    fx_name_stamp(parsed.stamp_us, digits);
    check(memcmp(digits, name + parsed.name_length + 1, sizeof digits) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *name = malloc(size + 1);
    if (name == NULL) {
        return 0;
    }
    if (size > 0) {
        memcpy(name, data, size);
    }
    name[size] = '\0';
    check_parts(name, size);
    int32_t world_size, rank;
    uint32_t graph;
    fxtap_step_state state;
    int64_t number;
    if (fx_rank_folder_parse(name, &world_size, &rank)) {
        check(world_size >= 0 && rank >= 0);
    }
    (void)fx_graph_folder_parse(name, &graph);
    if (fx_step_folder_parse(name, &state, &number)) {
        check(number >= 0 && strchr(name, '/') == NULL);
    }
    const char *half = name + strlen(name) / 2;
    int order = fx_natural_compare(name, half);
    check((order < 0) == (fx_natural_compare(half, name) > 0));
    check((order == 0) == (strcmp(name, half) == 0));
    (void)fx_position_compare(name, half);
    free(name);
    return 0;
}
