/* The rows of the table of options. Private to the config layer. */
#ifndef HW_CONFIG_OPTIONS_H
#define HW_CONFIG_OPTIONS_H

#include <headwise/config.h>

typedef enum hw_option_kind {
    HW_OPTION_INTEGER, /* int64_t */
    HW_OPTION_NUMBER,  /* double */
    HW_OPTION_BOOLEAN, /* bool */
    HW_OPTION_TEXT,    /* const char * */
    HW_OPTION_WORD,    /* const char *, one of the choices */
    HW_OPTION_CHOICE,  /* int: low + the place among the choices */
    HW_OPTION_NAMES,   /* hw_names */
} hw_option_kind;

typedef struct hw_option {
    const char *key;
    size_t offset; /* in hw_config */
    hw_option_kind kind;
    const char *initial; /* the default, as --set would have it */
    double low, high;    /* of numbers; +-INFINITY: no bound */
    const char *choices; /* words separated by | */
    const char *help;    /* with the unit; further lines after \n */
} hw_option;

extern const hw_option hw_options[];
extern const int hw_option_count;

int hw_option_find(const char *key); /* its row, or -1 */

/* The i-th of the choices into word, or false past the last. */
bool hw_option_choice(const hw_option *option, int i, char word[64]);

/* Sets the option from a scalar or list, with errors at its place, and remembers the place. */
bool hw_option_set(hw_config *config, int row, const hw_yaml *node, hw_error *err);

/* What is wrong with the section `decoding`: *key is the option and *other (may be NULL) the one that it does not go
 * with. False where nothing is. */
bool hw_decoding_fault(const hw_decoding *d, const char **key, const char **other, char message[512]);

/* The option's value as a configuration file would have it, in the arena. */
const char *hw_option_text(const hw_config *config, int row, hw_arena *arena);

#endif
