/* Shell scripts: assignments, and the arguments of commands, of arrays and of texts that hold arguments. Nothing is
 * expanded. $(...) is skipped; a here-document is read for its options only. Also reads the commands in another
 * file. */
#define _GNU_SOURCE /* memmem() */
#include "config_format.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { MAX_HEREDOCS = 16, MAX_BLOCKS = 128 };

struct word {
    size_t begin, end;
};

struct reader {
    struct plim_config_document *document;
    struct plim_error *err;
    const char *text;
    struct plim_config_node *root;
    size_t at;
    struct plim_config_node *command; /* the command that words are added to; NULL between commands */
    bool starts;                      /* the next word begins a command */
    struct word option;               /* the option that waits for its value; empty: none */
    struct plim_config_node *of;      /* the command of that option */
    struct plim_config_node *value;   /* value of the last option, which further words may follow; NULL: none */
    size_t heredoc_count;
    struct {
        char mark[64];
        bool tabs;
    } heredocs[MAX_HEREDOCS];
    size_t block_count;
    struct {
        const char *close;
        size_t begin;
        size_t branch; /* if and case: offset of the current branch */
    } blocks[MAX_BLOCKS];
};

static enum plim_status fail(struct reader *r, size_t at, const char *what)
{
    return plim_config_fail(r->document, at, r->err, "not valid shell: %s", what);
}

/* --- words ------------------------------------------------------------------------------------ */

static bool skip_word_part(struct reader *r, size_t *at);

/* Advances *at past $(...), $((...)) or ${...}, with the quotes inside. */
static bool skip_nested(struct reader *r, size_t *at, char open, char close)
{
    for (int depth = 0; r->text[*at]; ++*at) {
        char c = r->text[*at];
        if (c == '\\' && r->text[*at + 1])
            ++*at;
        else if (c == '\'' || c == '"') {
            if (!skip_word_part(r, at)) return false;
            --*at;
        } else if (c == open)
            depth++;
        else if (c == close && !--depth) {
            ++*at;
            return true;
        }
    }
    return false;
}

static bool skip_double_quotes(struct reader *r, size_t *at)
{
    for (++*at; r->text[*at] != '"'; ++*at) {
        char c = r->text[*at], next = c ? r->text[*at + 1] : '\0';
        if (!c) return false;
        if (c == '\\' && next) ++*at;
        if (c == '$' && (next == '(' || next == '{')) {
            ++*at;
            if (!skip_nested(r, at, next, next == '(' ? ')' : '}')) return false;
            --*at;
        }
    }
    ++*at;
    return true;
}

/* Advances *at past a quoted or expanded part, or one character. False if the part is not closed. */
static bool skip_word_part(struct reader *r, size_t *at)
{
    char c = r->text[*at], next = r->text[*at + 1];
    if (c == '"') return skip_double_quotes(r, at);
    if (c == '\'' || c == '`') {
        const char *end = strchr(r->text + *at + 1, c);
        if (!end) return false;
        *at = (size_t)(end + 1 - r->text);
        return true;
    }
    if (c == '$' && (next == '(' || next == '{')) {
        ++*at;
        return skip_nested(r, at, next, next == '(' ? ')' : '}');
    }
    *at += c == '\\' && next ? 2 : 1;
    return true;
}

static bool ends_word(char c)
{
    return !c || strchr(" \t\r\n;&|()<>", c);
}

static enum plim_status read_word(struct reader *r, struct word *out)
{
    out->begin = r->at;
    while (!ends_word(r->text[r->at])) {
        size_t start = r->at;
        if (!skip_word_part(r, &r->at))
            return fail(r, start, "the quote or bracket that opens here is not closed");
    }
    out->end = r->at;
    return PLIM_OK;
}

/* --- nodes ------------------------------------------------------------------------------------ */

static size_t name_length(const char *text)
{
    size_t length = 0;
    if (isdigit((unsigned char)*text)) return 0;
    while (isalnum((unsigned char)text[length]) || text[length] == '_') length++;
    return length;
}

/* Returns the offset of the innermost branch; 0 outside of branches. */
static size_t branch_here(const struct reader *r)
{
    size_t i = r->block_count;
    while (i && !r->blocks[i - 1].branch) i--;
    return i ? r->blocks[i - 1].branch : 0;
}

/* Begins a branch of the innermost block: after then, elif and else, or at the end of a case. */
static void begin_branch(struct reader *r, const char *close)
{
    if (r->block_count && !strcmp(r->blocks[r->block_count - 1].close, close))
        r->blocks[r->block_count - 1].branch = r->at;
}

static enum plim_status add_value(struct reader *r, struct plim_config_node *parent,
                                  struct word key, struct word value)
{
    struct plim_config_node *node;
    r->value = NULL;
    const char *text = r->text + value.begin;
    size_t length = value.end - value.begin;
    bool quoted = length >= 2 && (*text == '"' || *text == '\'') && text[length - 1] == *text &&
                  !memchr(text + 1, *text, length - 2);
    enum plim_status st =
        plim_config_node_add(r->document, parent, PLIM_CONFIG_SCALAR, value.begin, &node, r->err);
    if (!st)
        st = plim_config_node_text(r->document, node,
                                   quoted   ? PLIM_CONFIG_QUOTED
                                   : length ? PLIM_CONFIG_PLAIN
                                            : PLIM_CONFIG_EMPTY,
                                   value.end, text + quoted, length - 2 * quoted, r->err);
    if (!st)
        st = plim_config_node_name(r->document, node, r->text + key.begin, key.end - key.begin,
                                   key.begin, key.end, r->err);
    if (st) return st;
    r->value = node;
    if (parent->parent) return PLIM_OK;
    node->branch = branch_here(r);
    node->conditional = node->branch > 0;
    return PLIM_OK;
}

static enum plim_status open_command(struct reader *r, struct word key,
                                     struct plim_config_node **out)
{
    enum plim_status st = plim_config_node_add(r->document, r->root, PLIM_CONFIG_MAPPING,
                                               key.begin, out, r->err);
    if (st) return st;
    (*out)->layout = PLIM_CONFIG_WORDS;
    if (key.end == key.begin) return PLIM_OK;
    return plim_config_node_name(r->document, *out, r->text + key.begin, key.end - key.begin,
                                 key.begin, key.end, r->err);
}

/* --- arguments -------------------------------------------------------------------------------- */

static bool is_option(const char *text, size_t length)
{
    return length > 1 && text[0] == '-' &&
           (text[1] == '-' ? length > 2 : isalpha((unsigned char)text[1]));
}

/* Ends an option that waits for a value: it has none, so it is a switch. */
static enum plim_status end_option(struct reader *r)
{
    static const char on[] = "true";
    struct plim_config_node *node;
    struct word option = r->option;
    r->option = (struct word){0, 0};
    r->value = NULL;
    if (option.end == option.begin || !r->of) return PLIM_OK;
    enum plim_status st = plim_config_node_add(r->document, r->of, PLIM_CONFIG_SCALAR, option.end, &node, r->err);
    if (!st) st = plim_config_node_text(r->document, node, PLIM_CONFIG_PLAIN, option.end, on, sizeof(on) - 1, r->err);
    if (!st)
        st = plim_config_node_name(r->document, node, r->text + option.begin, option.end - option.begin, option.begin,
                                   option.end, r->err);
    if (!st) node->bare = true;
    return st;
}

/* Returns the offset of the = in "--name=4", "data.batch_size=4", "+trainer.x=8"; 0 if there is none. */
static size_t assignment_mark(const char *text, size_t length)
{
    size_t mark = 0;
    while (mark < length && (isalnum((unsigned char)text[mark]) || strchr("_.-+/@~", text[mark])))
        mark++;
    return mark < length && mark && text[mark] == '=' ? mark : 0;
}

/* True for a key of YACS, such as "SOLVER.IMS_PER_BATCH". Its value is the next word. */
static bool is_yacs_key(const char *text, size_t length)
{
    bool dotted = false;
    for (size_t i = 0; i < length; i++) {
        bool inner = text[i] == '.' && i && i + 1 < length;
        if (!isupper((unsigned char)text[i]) && !isdigit((unsigned char)text[i]) &&
            text[i] != '_' && !inner)
            return false;
        dotted |= inner;
    }
    return dotted && isupper((unsigned char)*text);
}

/* Adds a word to a command: an option, an option with its value, or the value of the option before. */
static enum plim_status add_argument(struct reader *r, struct plim_config_node *command,
                                     struct word word)
{
    const char *text = r->text + word.begin;
    size_t length = word.end - word.begin;
    bool quoted = length > 2 && (*text == '"' || *text == '\'') && text[length - 1] == *text;
    bool is_whole = quoted && !memchr(text, ' ', length) && is_option(text + 1, length - 2);
    if (is_whole || (quoted && assignment_mark(text + 1, length - 2))) { /* in quotes: "--batch", 'a.b=[4]' */
        word = (struct word){word.begin + 1, word.end - 1};
        text++, length -= 2;
    }
    size_t mark = assignment_mark(text, length);
    bool waits = r->option.end > r->option.begin;
    bool is_key = is_option(text, length) || (!waits && is_yacs_key(text, length));
    if (mark || is_key) {
        enum plim_status st = end_option(r);
        if (st) return st;
    }
    if (mark) {
        size_t plus = strspn(text, "+");
        return add_value(r, command, (struct word){word.begin + plus, word.begin + mark},
                         (struct word){word.begin + mark + 1, word.end});
    }
    if (is_key) {
        r->option = word;
        r->of = is_option(text, length) ? command : NULL;
        return PLIM_OK;
    }
    if (!waits && r->value && r->value->parent == command) r->value->words_end = word.end;
    if (!waits) return PLIM_OK;
    struct word option = r->option;
    r->option = (struct word){0, 0};
    return add_value(r, command, option, word);
}

/* True for a quoted word that holds arguments: ARGS="--a 4 \ ...", bash -c "python ...". */
static bool holds_arguments(const char *text, size_t length)
{
    return length > 4 && (*text == '"' || *text == '\'') && text[length - 1] == *text &&
           strcspn(text, " \t\n") < length &&
           (memmem(text, length, "--", 2) || memchr(text, '=', length));
}

/* Reads the arguments in a text enclosed in `quote` ('\0': none). */
static enum plim_status read_words(struct reader *r, struct word inside, struct word key,
                                   char quote)
{
    struct plim_config_node *command, *outer_of = r->of;
    struct word outer = r->option;
    enum plim_status st = open_command(r, key, &command);
    r->option = (struct word){0, 0};
    for (size_t at = inside.begin; at < inside.end && !st;) {
        struct word part = {at, at};
        while (part.end < inside.end && !strchr(" \t\r\n", r->text[part.end])) {
            bool nested = r->text[part.end] == '$' || (r->text[part.end] == '\'' && quote == '"');
            if (!nested || !skip_word_part(r, &part.end)) part.end++;
        }
        if (part.end > inside.end) part.end = inside.end;
        bool comment = r->text[part.begin] == '#';
        bool continued = part.end == part.begin + 1 && r->text[part.begin] == '\\';
        if (comment)
            part.end = plim_config_line_end(r->document, part.begin);
        else if (part.end > part.begin && !continued)
            st = add_argument(r, command, part);
        at = part.end + 1;
    }
    if (!st) st = end_option(r);
    r->option = outer;
    r->of = outer_of;
    return st;
}

static enum plim_status read_quoted(struct reader *r, struct word word, struct word key)
{
    return read_words(r, (struct word){word.begin + 1, word.end - 1}, key, r->text[word.begin]);
}

/* --- commands --------------------------------------------------------------------------------- */

static bool is_word(const struct reader *r, struct word word, const char *text)
{
    return word.end - word.begin == strlen(text) &&
           !strncmp(r->text + word.begin, text, word.end - word.begin);
}

static enum plim_status check_block(struct reader *r, struct word word)
{
    static const char *const opens[] = {"if", "do", "case", "{"};
    static const char *const closes[] = {"fi", "done", "esac", "}"};
    if (is_word(r, word, "then") || is_word(r, word, "elif") || is_word(r, word, "else")) begin_branch(r, "fi");
    for (size_t i = 0; i < 4; i++) {
        if (is_word(r, word, opens[i]) && r->block_count < MAX_BLOCKS) {
            r->blocks[r->block_count].close = closes[i];
            r->blocks[r->block_count].branch = 0;
            r->blocks[r->block_count++].begin = word.begin;
            begin_branch(r, "esac");
        }
        if (!is_word(r, word, closes[i])) continue;
        if (!r->block_count || strcmp(r->blocks[r->block_count - 1].close, closes[i]) != 0)
            return fail(r, word.begin, "this ends nothing that was begun");
        r->block_count--;
    }
    return PLIM_OK;
}

static enum plim_status read_array(struct reader *r, struct word key)
{
    struct plim_config_node *command;
    size_t start = r->at++;
    enum plim_status st = end_option(r);
    if (!st) st = open_command(r, key, &command);
    while (!st) {
        struct word word;
        r->at += strspn(r->text + r->at, " \t\r\n");
        if (r->text[r->at] == ')') break;
        if (r->text[r->at] == '#') {
            r->at += strcspn(r->text + r->at, "\n");
            continue;
        }
        if (!r->text[r->at]) return fail(r, start, "the bracket that opens here is not closed");
        if (r->text[r->at] == '\\' && strchr("\r\n", r->text[r->at + 1])) {
            r->at++;
            continue;
        }
        st = read_word(r, &word);
        if (st) return st;
        if (word.end == word.begin)
            r->at++;
        else if (holds_arguments(r->text + word.begin, word.end - word.begin))
            st = read_quoted(r, word, (struct word){word.begin, word.begin});
        else
            st = add_argument(r, command, word);
    }
    r->at += !st;
    return st ? st : end_option(r);
}

/* Reads NAME=value before a command or after export. */
static enum plim_status read_assignment(struct reader *r, size_t length, bool adds)
{
    struct word key = {r->at, r->at + length}, word;
    r->at += length + 1 + adds;
    if (r->text[r->at] == '(') return read_array(r, key);
    enum plim_status st = read_word(r, &word);
    if (st) return st;
    if (holds_arguments(r->text + word.begin, word.end - word.begin))
        return read_quoted(r, word, key);
    return adds ? PLIM_OK : add_value(r, r->root, key, word);
}

static bool is_declaration(const struct reader *r, struct word word)
{
    static const char *const words[] = {"export", "local", "declare", "readonly", "typeset", "env",
                                        "set",    "then",  "else",    "do",       "if",      "elif",
                                        "while",  "until", "!",       "{",        "time"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (is_word(r, word, words[i])) return true;
    return false;
}

/* Names a command "eval" if its script does something other than training, such as "eval.py". */
static enum plim_status name_command(struct reader *r, struct word word)
{
    size_t length = word.end - word.begin, stem;
    char name[64];
    const char *text = r->text + word.begin;
    for (size_t i = 0; i < length; i++)
        if (text[i] == '/') text += i + 1, length -= i + 1, i = (size_t)-1;
    stem = length > 3 &&
                   (!strncmp(text + length - 3, ".py", 3) || !strncmp(text + length - 3, ".sh", 3))
               ? length - 3
               : 0;
    if (!stem || stem >= sizeof(name) || r->command->key) return PLIM_OK;
    snprintf(name, sizeof(name), "%.*s", (int)stem, text);
    static const char *const words[] = {"eval", "test", "infer", "predict", "generate", "sample"};
    bool other = false;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        other |= strstr(name, words[i]) != NULL;
    if (!other || strstr(name, "train")) return PLIM_OK;
    return plim_config_node_name(r->document, r->command, "eval", 4, r->command->begin,
                                 r->command->begin, r->err);
}

/* Reads "for NAME in 4 8; do": the value of NAME is the list of words. */
static enum plim_status read_loop(struct reader *r)
{
    const char *text = r->text;
    size_t at = r->at + strspn(text + r->at, " \t"), length = name_length(text + at);
    struct word key = {at, at + length};
    at += length + strspn(text + at + length, " \t");
    if (!length || strncmp(text + at, "in", 2) != 0 || !strchr(" \t", text[at + 2])) return PLIM_OK;
    at += 2 + strspn(text + at + 2, " \t");
    struct word values = {at, at + strcspn(text + at, ";\r\n")};
    while (values.end > values.begin && strchr(" \t", text[values.end - 1])) values.end--;
    r->at = values.end;
    return add_value(r, r->root, key, values);
}

static enum plim_status read_command_word(struct reader *r)
{
    size_t length = name_length(r->text + r->at), mark = r->at + length;
    bool adds = length && r->text[mark] == '+' && r->text[mark + 1] == '=';
    if (r->starts && length && (adds || r->text[mark] == '='))
        return read_assignment(r, length, adds);
    struct word word;
    enum plim_status st = read_word(r, &word);
    if (st) return st;
    if (r->starts && (st = check_block(r, word))) return st;
    if (r->starts && is_declaration(r, word)) return PLIM_OK;
    if (r->starts && is_word(r, word, "for")) return read_loop(r);
    if (!r->command) st = open_command(r, (struct word){word.begin, word.begin}, &r->command);
    r->starts = false;
    if (st) return st;
    if (holds_arguments(r->text + word.begin, word.end - word.begin)) {
        r->option = (struct word){0, 0};
        r->value = NULL;
        return read_quoted(r, word, (struct word){word.begin, word.begin});
    }
    if ((st = name_command(r, word))) return st;
    return add_argument(r, r->command, word);
}

static enum plim_status end_command(struct reader *r)
{
    r->command = NULL;
    r->starts = true;
    return end_option(r);
}

/* --- here-documents --------------------------------------------------------------------------- */

/* Reads the mark of a here-document, "<<EOF" or "<<-'EOF'"; its body begins on the next line. Skips "<<<". */
static enum plim_status note_heredoc(struct reader *r)
{
    r->at += 2;
    if (r->text[r->at] == '<') {
        r->at++;
        return PLIM_OK;
    }
    bool tabs = r->text[r->at] == '-';
    r->at += tabs;
    r->at += strspn(r->text + r->at, " \t");
    struct word word;
    enum plim_status st = read_word(r, &word);
    if (st || r->heredoc_count == MAX_HEREDOCS) return st;
    char *mark = r->heredocs[r->heredoc_count].mark;
    size_t used = 0;
    for (size_t i = word.begin; i < word.end && used + 1 < sizeof(r->heredocs[0].mark); i++)
        if (!strchr("\"'\\", r->text[i])) mark[used++] = r->text[i];
    mark[used] = '\0';
    r->heredocs[r->heredoc_count++].tabs = tabs;
    return PLIM_OK;
}

static enum plim_status read_heredocs(struct reader *r)
{
    enum plim_status st = PLIM_OK;
    for (size_t i = 0; i < r->heredoc_count; i++) {
        size_t begin = r->at;
        while (r->text[r->at]) {
            size_t end = plim_config_line_end(r->document, r->at), from = r->at;
            if (r->heredocs[i].tabs) from += strspn(r->text + from, "\t");
            bool last = end - from == strlen(r->heredocs[i].mark) &&
                        !strncmp(r->text + from, r->heredocs[i].mark, end - from);
            r->at = end + strcspn(r->text + end, "\n");
            r->at += r->text[r->at] == '\n';
            if (last) break;
        }
        /* The body may be a command, as in "read -d '' cmd <<EOF" and "sbatch <<EOF". */
        if (!st && begin < r->at && memmem(r->text + begin, r->at - begin, "--", 2))
            st = read_words(r, (struct word){begin, r->at}, (struct word){begin, begin}, '\0');
    }
    r->heredoc_count = 0;
    return st;
}

/* Reads the options that Slurm takes from comments: "#SBATCH --nodes=2 # two". */
static enum plim_status read_comment(struct reader *r)
{
    static const char slurm[] = "#SBATCH";
    size_t begin = r->at, length = sizeof(slurm) - 1;
    bool begins_line = !begin || r->text[begin - 1] == '\n';
    r->at = plim_config_line_end(r->document, begin);
    if (!begins_line || strncmp(r->text + begin, slurm, length) || !strchr(" \t", r->text[begin + length]))
        return PLIM_OK;
    return read_words(r, (struct word){begin + length, r->at}, (struct word){begin + 1, begin + length}, '\0');
}

/* Reads a word, an operator or a comment. */
static enum plim_status step(struct reader *r)
{
    const char *at = r->text + r->at;
    if (*at == '\\' && (at[1] == '\n' || (at[1] == '\r' && at[2] == '\n'))) {
        r->at += at[1] == '\n' ? 2 : 3;
    } else if (*at == ' ' || *at == '\t' || *at == '\r') {
        r->at++;
    } else if (*at == '#') {
        return read_comment(r);
    } else if (*at == '\n') {
        r->at++;
        enum plim_status st = end_command(r);
        return st ? st : read_heredocs(r);
    } else if (at[0] == '<' && at[1] == '<') {
        return note_heredoc(r);
    } else if (*at == '<' || *at == '>') {
        r->at++;
        r->at += r->text[r->at] == '&';
    } else if (at[0] == '(' && at[1] == '(') {
        if (!skip_nested(r, &r->at, '(', ')'))
            return fail(r, (size_t)(at - r->text), "the bracket that opens here is not closed");
    } else if (strchr(";&|()", *at)) {
        if (at[0] == ';' && at[1] == ';') begin_branch(r, "esac");
        r->at++;
        return end_command(r);
    } else {
        return read_command_word(r);
    }
    return PLIM_OK;
}

enum plim_status plim_config_read_shell(struct plim_config_document *document,
                                        struct plim_error *err)
{
    struct reader r = {.document = document,
                       .err = err,
                       .text = document->text,
                       .at = document->bom,
                       .starts = true};
    enum plim_status st = plim_config_node_add(document, NULL, PLIM_CONFIG_MAPPING, document->bom,
                                               &document->root, err);
    r.root = document->root;
    while (!st && r.at < document->length) st = step(&r);
    if (!st) st = end_option(&r);
    if (!st && r.block_count)
        st = plim_config_fail(document, r.blocks[r.block_count - 1].begin, err,
                              "not valid shell: what begins here has no '%s'",
                              r.blocks[r.block_count - 1].close);
    return st;
}

/* --- commands within another file ------------------------------------------------------------- */

enum plim_status plim_config_read_script(struct plim_config_document *document, struct plim_config_node *mapping,
                                         struct plim_config_script part, struct plim_error *err)
{
    struct reader r = {.document = document, .err = err, .text = document->text, .root = mapping, .starts = true};
    size_t length = document->length;
    char behind = document->text[part.end];
    enum plim_status st = PLIM_OK;
    document->text[part.end] = '\0'; /* the part is read as a whole script */
    document->length = part.end;
    for (r.at = part.begin; r.at < part.end && !st;) st = step(&r);
    if (!st) st = end_option(&r);
    document->text[part.end] = behind;
    document->length = length;
    return st;
}

enum plim_status plim_config_read_words(struct plim_config_document *document, struct plim_config_node *mapping,
                                        struct plim_config_script part, char quote, struct plim_error *err)
{
    struct reader r = {.document = document, .err = err, .text = document->text, .root = mapping};
    return read_words(&r, (struct word){part.begin, part.end}, (struct word){part.begin, part.begin}, quote);
}
