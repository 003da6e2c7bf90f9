/* Inside layer 11: the figures of the logs once more, as TensorBoard reads them (training.tensorboard).
 *
 * The file is a TFRecord file of Event messages (tensorflow/core/util/event.proto): a record is the length of its
 * bytes, eight of them little endian, a checksum of these, the bytes, and a checksum of them; checksums are CRC-32C,
 * rotated and with a number added. An event has a time and so differs from run to run, unlike the logs. */
#ifndef HW_TRAIN_EVENTS_H
#define HW_TRAIN_EVENTS_H

#include <headwise/text.h>

#define HW_EVENTS "events.out.tfevents.headwise" /* its name; TensorBoard looks for the middle of it */

typedef struct hw_events {
    int file; /* descriptor; 0: not open */
    char path[HW_PATH];
} hw_events;

/* Opens the file for appending. Records of steps beyond `step`, and what is broken, are cut off first. */
bool hw_events_open(hw_events *e, const char *path, int64_t step, hw_error *err);
/* The numbers of a line whose first column is the step, as GROUP/NAME with the names of the header; whole or not at
 * all. What is no number is left out. */
bool hw_events_row(hw_events *e, const char *group, const char *header, const char *line, hw_error *err);
bool hw_events_sync(hw_events *e, hw_error *err); /* waits until the disk has it; one that is not open is fine, */
void hw_events_close(hw_events *e);               /* here too */

#endif
