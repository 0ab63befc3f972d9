#include "util/glob.h"

#include <stdio.h>
#include <string.h>

#include "util/memory.h"

#define MAX_SOURCE 4352 /* a path, a colon, a number */
#define N_EXAMPLES ((size_t)4)

/* The names that Dynamo, torch.compile and wrappers such as DistributedDataParallel give to a model's wrapper. */
const char *fx_glob_after_root(const char *module_path)
{
    static const char *const roots[] = {"self", "_orig_mod", "module"};
    if ((module_path[0] == 'L' || module_path[0] == 'G') && module_path[1] == '[') {
        const char *end = strchr(module_path, ']'); /* L['self'], G['model'] */
        return end == NULL ? NULL : end[1] == '.' ? end + 2 : end + 1;
    }
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
        size_t length = strlen(roots[i]);
        if (strncmp(module_path, roots[i], length) == 0 && module_path[length] == '.') {
            return module_path + length + 1;
        }
    }
    return NULL;
}

static bool module_matches(const char *pattern, const char *module_path)
{
    for (const char *path = module_path; path != NULL; path = fx_glob_after_root(path)) {
        if (fxtap_glob_match(pattern, path)) {
            return true;
        }
    }
    return false;
}

static bool source_matches(const char *pattern, const fx_glob_node *node)
{
    bool is_source = strpbrk(pattern, "/:") != NULL || strstr(pattern, ".py") != NULL;
    if (!is_source || node->source_file == NULL || node->source_file[0] == '\0') {
        return false;
    }
    char text[MAX_SOURCE];
    snprintf(text, sizeof text, "%s:%d", node->source_file, (int)node->source_line);
    const char *slash = strrchr(text, '/');
    return fxtap_glob_match(pattern, text) || (slash != NULL && fxtap_glob_match(pattern, slash + 1));
}

bool fx_glob_node_match(const char *pattern, const fx_glob_node *node)
{
    return pattern[0] != '\0' && /* it would match whatever is unknown of the node */
           ((node->name != NULL && fxtap_glob_match(pattern, node->name)) ||
            (node->target != NULL && fxtap_glob_match(pattern, node->target)) ||
            (node->module_path != NULL && module_matches(pattern, node->module_path)) || source_matches(pattern, node));
}

/* The first few distinct names: "add, aten.add.Tensor, fc1, ..." */
static void append_examples(fxtap_buffer *out, const char *const *names, size_t n_names)
{
    size_t n = 0;
    for (size_t i = 0; i < n_names && n <= N_EXAMPLES; i++) {
        bool is_new = true;
        for (size_t j = 0; j < i && is_new; j++) {
            is_new = strcmp(names[i], names[j]) != 0;
        }
        if (is_new && n < N_EXAMPLES) {
            fxtap_buffer_printf(out, "%s%s", n > 0 ? ", " : ", which has ", names[i]);
        }
        n += is_new;
    }
    fxtap_buffer_text(out, n > N_EXAMPLES ? ", ..." : "");
}

void fx_glob_hint(const char *pattern, const char *const *names, size_t n_names, fxtap_buffer *out)
{
    pattern += strspn(pattern, "*"); /* "blocks.9.fc*" is similar to blocks.1.fc */
    char *typed = fx_strdup(pattern);
    if (typed == NULL) {
        return;
    }
    for (size_t length = strlen(typed); length > 0 && typed[length - 1] == '*'; length--) {
        typed[length - 1] = '\0';
    }
    const char *nearest = fxtap_nearest_name(typed, names, n_names);
    if (nearest != NULL) {
        fxtap_buffer_printf(out, ", did you mean %s?", nearest);
    } else {
        append_examples(out, names, n_names);
    }
    fx_free(typed);
}
