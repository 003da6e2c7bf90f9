/* The completion of bash: commands and verbs, options, the words that an option takes, keys of --set; files elsewhere.
 *
 * One shell function is a table made from the tables of commands and options: for "heads roles" the options of that
 * verb, for "heads roles --json" the values of that option. Another, the same for all, looks where the cursor is. */
#include "cli/pages.h"

#include <string.h>

/* A case of the table: `words` are what may follow `place`. */
static void put_case(FILE *out, const char *place, const char *words)
{
    fprintf(out, "    '%s') echo '%s' ;;\n", place, words);
}

static const char *join(hw_arena *arena, const char *words, const char *prefix, const char *word, const char *suffix)
{
    return hw_arena_string(arena, "%s%s%s%s%s", words, *words ? " " : "", prefix, word, suffix);
}

/* What may stand behind an option, where that is known. */
static void put_values(FILE *out, hw_arena *arena, const char *place, const hw_cli_option *option)
{
    const char *words = "", *key;
    for (int i = 0; option->kind == HW_CLI_CHOICE && option->choices[i]; i++)
        words = join(arena, words, "", option->choices[i], "");
    for (int i = 0; !strcmp(option->name, "set") && (key = hw_config_key(i)); i++)
        words = join(arena, words, "", key, "=");
    if (*words) put_case(out, hw_arena_string(arena, "%s --%s", place, option->name), words);
}

static void put_commands(FILE *out, hw_arena *arena, const char *above, const hw_cli_entry *entries);

static void put_command(FILE *out, hw_arena *arena, const char *place, const hw_cli_command *command)
{
    const char *words = "";
    const hw_cli_option *option;
    if (command->verbs) {
        put_commands(out, arena, place, command->verbs);
        return;
    }
    for (int i = 0; i < command->option_count; i++) words = join(arena, words, "--", command->options[i].name, "");
    for (int i = 0; (option = hw_cli_common_option(command->takes, i)); i++)
        words = join(arena, words, "--", option->name, "");
    put_case(out, place, words);
    for (int i = 0; i < command->option_count; i++) put_values(out, arena, place, &command->options[i]);
    for (int i = 0; (option = hw_cli_common_option(command->takes, i)); i++) put_values(out, arena, place, option);
}

static void put_commands(FILE *out, hw_arena *arena, const char *above, const hw_cli_entry *entries)
{
    const char *words = "";
    for (int i = 0; entries[i].name; i++) words = join(arena, words, "", entries[i].name, "");
    put_case(out, above, hw_arena_string(arena, "%s --help%s", words, *above ? "" : " --help-config --version"));
    for (; entries->name; entries++)
        put_command(out, arena, hw_arena_string(arena, "%s%s%s", above, *above ? " " : "", entries->name),
                    entries->command);
}

void hw_cli_completion(FILE *out, hw_arena *arena)
{
    fputs("# bash completion of headwise\n"
          "\n"
          "# What may follow: a command and verb, or these and an option.\n"
          "_headwise_words()\n"
          "{\n"
          "    case \"$1\" in\n",
          out);
    put_commands(out, arena, "", hw_cli_commands());
    fputs("    esac\n"
          "}\n"
          "\n"
          "_headwise()\n"
          "{\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} place='' next='' words='' i\n"
          "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
          "        next=\"${place:+$place }${COMP_WORDS[i]}\"\n"
          "        [[ ${COMP_WORDS[i]} != -* && -n $(_headwise_words \"$next\") ]] || break\n"
          "        place=$next\n"
          "    done\n"
          "    [[ $before == --* ]] && words=$(_headwise_words \"$place $before\")\n"
          "    if [[ -z $words ]]; then\n"
          "        words=$(_headwise_words \"$place\")\n"
          "        [[ $word == -* || $words != --* ]] || words=''\n"
          "    elif [[ $before == --set ]]; then\n"
          "        compopt -o nospace 2> /dev/null\n"
          "    fi\n"
          "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
          "}\n"
          "complete -o default -F _headwise headwise\n",
          out);
}
