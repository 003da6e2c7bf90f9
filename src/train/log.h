/* Inside layer 11: the files that a run writes line by line, train.tsv, valid.tsv and times.tsv in the model directory.
 *
 * train.tsv and valid.tsv hold nothing that differs from run to run of the same configuration; durations are in
 * times.tsv. After an interruption, lines beyond the checkpoint are taken back before the run goes on. */
#ifndef HW_TRAIN_LOG_H
#define HW_TRAIN_LOG_H

#include "events.h"

typedef struct hw_log {
    int file; /* descriptor; 0: not open */
    char path[HW_PATH];
    const char *header;
    hw_events *events; /* where its figures go too; NULL: nowhere */
    const char *group; /* in front of their names there */
} hw_log;

/* Opens the file for appending. Lines whose first column is a step beyond `step` are removed first; a new file gets the
 * header, which outlives the log. */
bool hw_log_open(hw_log *log, const char *path, const char *header, int64_t step, hw_error *err);
/* One line without its \n, which reaches the system at once, whole or not at all. */
bool hw_log_line(hw_log *log, hw_error *err, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Waits until the disk has all lines. */
bool hw_log_sync(hw_log *log, hw_error *err);
void hw_log_close(hw_log *log); /* one that was never opened is fine */

#endif
