/* Inside layer 6: making a vocabulary token by token, as those whose tokens a model brings are made. */
#ifndef HW_TEXT_VOCABULARY_H
#define HW_TEXT_VOCABULARY_H

#include <headwise/text.h>

hw_vocabulary *hw_vocabulary_begin(hw_arena *arena); /* the special tokens */
/* One token more, with the next id; false where it is there already. */
bool hw_vocabulary_add(hw_vocabulary *v, const char *token, size_t bytes);

#endif
