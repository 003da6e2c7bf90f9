/* Inside layer 11: the picture of a run. */
#ifndef HW_TRAIN_CURVES_H
#define HW_TRAIN_CURVES_H

#include <headwise/base.h>

/* Draws DIRECTORY/train.tsv and DIRECTORY/valid.tsv, which may be missing, into DIRECTORY/curves.svg, whole or not at
 * all: loss, quality on the validation set, learning rate. Columns are found by their names in the first line. The best
 * step is the last row of valid.tsv whose `best` is above 0. Numbers that are not finite leave a gap. Equal logs give
 * the same bytes. Errors: a log that cannot be read or is malformed (file:line), a file that cannot be written. */
bool hw_curves_write(const char *directory, hw_error *err);

#endif
