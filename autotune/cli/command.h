/* The commands. A new command is a file in this folder, a line in PLIM_COMMAND_MAP (options.h) and a line in
 * meson.build. / */
#ifndef PLIM_AUTOTUNE_CLI_COMMAND_H
#define PLIM_AUTOTUNE_CLI_COMMAND_H

#include "cli.h"
#include "options.h"

struct plim_command {
    const char *name, *argument, *summary; /* argument: "SPEC", "FILE"; NULL: none */
    const char *about;                     /* a few lines for its --help */
    enum plim_command_id id;
    /* Runs the command and writes its result to io->out. PLIM_NOFIT, and the status of a search that ended early, are
     * returned after a report was written, and need no message; for any other error `err` has one. */
    enum plim_status (*run)(const struct plim_request *request, const struct plim_io *io,
                            struct plim_error *err);
};

#define PLIM_COMMAND_DECLARE(id, name) extern const struct plim_command plim_command_##name;
PLIM_COMMAND_MAP(PLIM_COMMAND_DECLARE)
#undef PLIM_COMMAND_DECLARE

/* Finds a command by name. PLIM_INVALID: there is none; the message suggests a similar name. */
enum plim_status plim_command_find(const char *name, const struct plim_command **out,
                                   struct plim_error *err) PLIM_MUST_CHECK;

/* Returns the commands in the order of help; `index` must be less than PLIM_COMMAND_COUNT. */
const struct plim_command *plim_command_at(size_t index);

/* Print the help of the whole program and of a command. */
extern const char plim_help_about[]; /* explains SPEC, and where options are listed */
void plim_help_print(FILE *out);
void plim_help_print_command(const struct plim_command *command, FILE *out);

/* Prints the help of a topic that is not a command: "spec", "model", a family, a key of a spec or a section of keys.
 * Returns false if there is no such topic. */
bool plim_help_print_topic(const char *topic, FILE *out);
/* Returns topic number `index`; NULL after the last. */
const char *plim_help_topic(size_t index);

/* The introduction to specs, printed before the keys. */
extern const char plim_help_spec[];

/* Print the same as manual pages: roff with the macros of man(7). */
void plim_manual_print(const char *version, FILE *out);
void plim_manual_print_command(const struct plim_command *command, const char *version, FILE *out);
void plim_manual_print_spec(const char *version, FILE *out);

#endif
