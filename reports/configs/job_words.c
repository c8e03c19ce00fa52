#include "job_words.h"
#include "job_table.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

bool plim_config_word_is_null(const char *text)
{
    static const char *const words[] = {"", "null", "~", "none", "???", "[]"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (!strcasecmp(text, words[i])) return true;
    return false;
}

/* Normalises a word as HfArgumentParser does: "True", "yes", "on" and "1" are true. Drops "torch." of a dtype. */
static const char *plain_word(const char *text)
{
    static const char *const trues[] = {"true", "yes", "on", "1"}, *const falses[] = {"false", "no", "off", "0"};
    for (size_t i = 0; i < sizeof(trues) / sizeof(trues[0]); i++) {
        if (!strcasecmp(text, trues[i])) return "true";
        if (!strcasecmp(text, falses[i])) return "false";
    }
    return strncmp(text, "torch.", 6) ? text : text + 6;
}

bool plim_config_word_is_same(const char *a, const char *b)
{
    return !strcasecmp(plain_word(a), plain_word(b));
}

bool plim_config_word_is_set(const char *word)
{
    return *word && word[strspn(word, "0.")];
}

static bool is_among(const struct plim_yaml_node *words, const char *word)
{
    for (size_t i = 0; i < plim_config_job_texts(words); i++) {
        const char *text = plim_config_job_text(words, i);
        if (plim_config_word_is_same(text, word) || (!strcmp(text, "*") && plim_config_word_is_set(word))) return true;
    }
    return false;
}

size_t plim_config_words_among(const struct plim_yaml_node *words, const char *text, size_t *count)
{
    char item[PLIM_CONFIG_JOB_TEXT];
    bool is_list = *text == '[';
    size_t among = 0;
    *count = 0;
    for (const char *at = text + is_list; !*count || *at;) {
        size_t length = is_list ? strcspn(at, ",]") : strlen(at);
        snprintf(item, sizeof(item), "%.*s", (int)length, at);
        among += is_among(words, item);
        ++*count;
        at += length;
        if (is_list) at += strspn(at, ",] ");
    }
    return among;
}

const char *plim_config_word_value(const struct plim_yaml_node *words, const char *word)
{
    const char *any = NULL;
    for (size_t i = 0; i < words->count; i++) {
        if (plim_config_word_is_same(words->keys[i]->text, word)) return words->items[i]->text;
        if (!strcmp(words->keys[i]->text, "*")) any = words->items[i]->text;
    }
    return any;
}

const char *plim_config_word_quote(const char *mark, const char *text, char out[PLIM_CONFIG_JOB_TEXT])
{
    size_t used = (size_t)snprintf(out, PLIM_CONFIG_JOB_TEXT, "'%s", mark);
    for (; *text && used + 3 < PLIM_CONFIG_JOB_TEXT; text++) {
        if (*text == '\'') out[used++] = '\'';
        out[used++] = *text;
    }
    snprintf(out + used, PLIM_CONFIG_JOB_TEXT - used, "'");
    return out;
}

const char *plim_config_word_besides(const char *name, const char *list, char out[PLIM_CONFIG_JOB_TEXT])
{
    bool has_names = *list == '[' && strlen(list) > 2;
    snprintf(out, PLIM_CONFIG_JOB_TEXT, "%s%s%s%s", has_names ? "[" : "", name, has_names ? ", " : "",
             has_names ? list + 1 : "");
    return out;
}
