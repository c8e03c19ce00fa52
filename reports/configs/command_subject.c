#include "command_subject.h"
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Is it one of the ways to train that a command is named by, a part of a name between marks ("run_dpo")? NULL: none */
static const char *way_to_train(const char *name)
{
    static const char *const ways[] = {"dpo", "grpo", "kto",    "orpo", "cpo",
                                       "ppo", "rloo", "reward", "gkd"};
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        size_t length = strlen(ways[i]);
        for (const char *at = name; (at = strstr(at, ways[i])); at++)
            if ((at == name || !isalnum((unsigned char)at[-1])) &&
                !isalnum((unsigned char)at[length]))
                return ways[i];
    }
    return NULL;
}

static const char *subject_of_script(const char *name)
{
    static const char *const words[] = {"eval", "test", "infer", "predict", "generate", "sample"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]) && !strstr(name, "train"); i++)
        if (strstr(name, words[i])) return "eval";
    return way_to_train(name);
}

/* Does the word that begins there stand behind the program trl? */
static bool follows_trl(const char *text, size_t begin)
{
    size_t at = begin;
    while (at && strchr(" \t", text[at - 1])) at--;
    bool is_trl = at >= 3 && at < begin && !strncmp(text + at - 3, "trl", 3);
    return is_trl && (at == 3 || !isalnum((unsigned char)text[at - 4]));
}

const char *plim_config_subject(const char *text, size_t begin, size_t end)
{
    char name[64];
    size_t length = end - begin, last = end;
    bool is_script =
        length > 3 && (!strncmp(text + end - 3, ".py", 3) || !strncmp(text + end - 3, ".sh", 3));
    if (!is_script && !follows_trl(text, begin)) return NULL;
    while (last > begin && text[last - 1] != '/') last--;
    length = end - last - (is_script ? 3 : 0);
    if (!length || length >= sizeof(name)) return NULL;
    snprintf(name, sizeof(name), "%.*s", (int)length, text + last);
    return is_script ? subject_of_script(name) : way_to_train(name);
}
